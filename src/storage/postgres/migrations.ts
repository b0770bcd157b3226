/**
 * Schema of the database, one migration after the other; a migration that has been released is never changed.
 *
 *   strongroom.schema_version   version: number of migrations made
 *   strongroom.vault            id (generation), header: every vault there has been
 *   strongroom.current          one row: vault, the current generation (null before the first init), and epoch, a new
 *                               UUID with each change of the vault or of its header
 *   strongroom.secret           vault, path, blob: names are in the order of their UTF-8 bytes (COLLATE "C")
 *   strongroom.secret_count     vault, slot, secrets: their sum is the number of secrets; slots let writers not wait for
 *                               each other
 *   strongroom.document         vault, name, bytes, tag
 *   strongroom.blob             vault, space, path, blob: the spaces beside the secrets, see `secret-store.ts`
 *
 * Functions make all changes: one round trip each. Every change holds the advisory lock `changing` shared, and one of the
 * vault or its header holds it alone; what follows in a function sees what was committed before (READ COMMITTED).
 * DANGER: without it a put under an old header could be committed after a rotation has looked for it.
 */

/** Keys of advisory locks (classid, objid). */
export const lockClass = 0x53524d56;
export const locks = { migrating: 1, changing: 2, sweeping: 3 } as const;

const shared = `pg_catalog.pg_advisory_xact_lock_shared(${lockClass}, ${locks.changing})`;
const alone = `pg_catalog.pg_advisory_xact_lock(${lockClass}, ${locks.changing})`;

/** The bytes of a blob that its tag is made of, see `blob-tag.ts`. */
const tag = "pg_catalog.encode(pg_catalog.substr(s.blob, 10, 12), 'hex')";

const first = `
CREATE TABLE strongroom.vault (
  id integer PRIMARY KEY,
  header bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE strongroom.current (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  vault integer REFERENCES strongroom.vault,
  epoch uuid NOT NULL
);
INSERT INTO strongroom.current (vault, epoch) VALUES (NULL, gen_random_uuid());
CREATE TABLE strongroom.secret (
  vault integer NOT NULL,
  path text COLLATE "C" NOT NULL,
  blob bytea NOT NULL,
  PRIMARY KEY (vault, path)
);
ALTER TABLE strongroom.secret ALTER blob SET STORAGE EXTERNAL; -- ciphertext cannot be compressed
CREATE TABLE strongroom.secret_count (
  vault integer NOT NULL,
  slot integer NOT NULL,
  secrets bigint NOT NULL,
  PRIMARY KEY (vault, slot)
) WITH (fillfactor = 50);
CREATE TABLE strongroom.document (
  vault integer NOT NULL,
  name text NOT NULL,
  bytes bytea NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (vault, name)
);
ALTER TABLE strongroom.document ALTER bytes SET STORAGE EXTERNAL;

-- The first bytes of a blob, up to the end of its metadata; its layout is drawn in blob-tag.ts.
CREATE FUNCTION strongroom.head(blob bytea, most integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  start bytea := pg_catalog.substr(blob, 1, 9);
BEGIN
  IF pg_catalog.length(start) < 9 THEN RETURN start; END IF;
  RETURN pg_catalog.substr(blob, 1, LEAST(most, 9 + (
    (pg_catalog.get_byte(start, 5)::bigint << 24) + (pg_catalog.get_byte(start, 6) << 16)
    + (pg_catalog.get_byte(start, 7) << 8) + pg_catalog.get_byte(start, 8)))::integer);
END $$;

-- Makes one change; returns how many secrets it adds, or null when the path is not in the expected state.
CREATE FUNCTION strongroom.change(in_vault integer, in_path text, in_blob bytea, expected text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  is_new boolean;
BEGIN
  IF in_blob IS NULL THEN
    DELETE FROM strongroom.secret s WHERE s.vault = in_vault AND s.path = in_path
      AND (expected IS NULL OR expected = 'present' OR ${tag} = expected);
    IF FOUND THEN RETURN -1; END IF;
    IF expected IS NULL THEN RETURN 0; END IF;
    IF expected <> 'absent' THEN RETURN NULL; END IF;
    PERFORM FROM strongroom.secret s WHERE s.vault = in_vault AND s.path = in_path;
    RETURN CASE WHEN NOT FOUND THEN 0 END;
  END IF;
  IF expected IS NULL THEN
    INSERT INTO strongroom.secret AS s VALUES (in_vault, in_path, in_blob)
      ON CONFLICT (vault, path) DO UPDATE SET blob = excluded.blob
      RETURNING s.xmax = 0 INTO is_new; -- 0: no row was there to be locked
    RETURN is_new::integer;
  END IF;
  IF expected = 'absent' THEN
    INSERT INTO strongroom.secret VALUES (in_vault, in_path, in_blob) ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN 1 END;
  END IF;
  UPDATE strongroom.secret s SET blob = in_blob WHERE s.vault = in_vault AND s.path = in_path
    AND (expected = 'present' OR ${tag} = expected);
  RETURN CASE WHEN FOUND THEN 0 END;
END $$;

CREATE FUNCTION strongroom.count_added(in_vault integer, added integer) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO strongroom.secret_count AS n VALUES (in_vault, pg_catalog.pg_backend_pid() % 64, added)
    ON CONFLICT (vault, slot) DO UPDATE SET secrets = n.secrets + excluded.secrets;
$$;

-- Makes one change, if the epoch is the caller's. "refused" is 0 when the path is not in the expected state.
CREATE FUNCTION strongroom.commit_one(
  wanted uuid, in_path text, in_blob bytea, expected text, OUT epoch uuid, OUT refused integer
) LANGUAGE plpgsql AS $$
DECLARE
  now_vault integer;
  added integer;
BEGIN
  PERFORM ${shared};
  SELECT c.vault, c.epoch INTO now_vault, epoch FROM strongroom.current c;
  IF epoch <> wanted THEN RETURN; END IF;
  added := strongroom.change(now_vault, in_path, in_blob, expected);
  IF added IS NULL THEN refused := 0; END IF;
  IF added <> 0 THEN PERFORM strongroom.count_added(now_vault, added); END IF;
END $$;

-- As commit_one, all changes or none: blob i is at starts[i] in blobs, counted from 1; a length of -1 removes, and one of
-- -2 changes nothing, but requires the expected tag until the commit. Paths are
-- changed in their order, so that no two batches wait for each other. "refused": the first whose path is not as expected.
CREATE FUNCTION strongroom.commit_many(
  wanted uuid, paths text[], starts integer[], lengths integer[], blobs bytea, expected text[],
  OUT epoch uuid, OUT refused integer
) LANGUAGE plpgsql AS $$
DECLARE
  now_vault integer;
  i integer;
  added integer;
  total integer := 0;
  refusal integer;
BEGIN
  PERFORM ${shared};
  SELECT c.vault, c.epoch INTO now_vault, epoch FROM strongroom.current c;
  IF epoch <> wanted THEN RETURN; END IF;
  BEGIN
    FOR i IN SELECT p.i FROM unnest(paths) WITH ORDINALITY AS p (path, i) ORDER BY p.path COLLATE "C" LOOP
      IF lengths[i] = -2 THEN
        added := NULL;
        SELECT 0 INTO added FROM strongroom.secret s
          WHERE s.vault = now_vault AND s.path = paths[i] AND ${tag} = expected[i] FOR SHARE;
      ELSE
        added := strongroom.change(
          now_vault, paths[i],
          CASE WHEN lengths[i] >= 0 THEN pg_catalog.substr(blobs, starts[i], lengths[i]) END, expected[i]);
      END IF;
      IF added IS NULL THEN refusal := LEAST(refusal, i - 1); ELSE total := total + added; END IF;
    END LOOP;
    IF refusal IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'SR001'; END IF;
    IF total <> 0 THEN PERFORM strongroom.count_added(now_vault, total); END IF;
  EXCEPTION WHEN SQLSTATE 'SR001' THEN
    refused := refusal;
  END;
END $$;

-- Makes a new, empty vault current, if the epoch is the caller's; kept: the vault that was.
CREATE FUNCTION strongroom.start_vault(
  wanted uuid, next uuid, in_header bytea, OUT epoch uuid, OUT kept integer, OUT made integer
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ${alone};
  SELECT c.vault, c.epoch INTO kept, epoch FROM strongroom.current c;
  IF epoch <> wanted THEN RETURN; END IF;
  INSERT INTO strongroom.vault (id, header) SELECT COALESCE(MAX(v.id), 0) + 1, in_header FROM strongroom.vault v
    RETURNING id INTO made;
  UPDATE strongroom.current c SET vault = made, epoch = next;
  epoch := next;
END $$;

-- Replaces the header, if the epoch is the caller's and the header is the one before.
CREATE FUNCTION strongroom.replace_header(
  wanted uuid, next uuid, in_header bytea, before bytea, OUT epoch uuid, OUT replaced boolean
) LANGUAGE plpgsql AS $$
DECLARE
  now_vault integer;
BEGIN
  PERFORM ${alone};
  SELECT c.vault, c.epoch INTO now_vault, epoch FROM strongroom.current c;
  replaced := false;
  IF epoch <> wanted THEN RETURN; END IF;
  UPDATE strongroom.vault v SET header = in_header WHERE v.id = now_vault AND v.header = before;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE strongroom.current c SET epoch = next;
  replaced := true;
  epoch := next;
END $$;

-- Writes a document over the one with the expected tag (null: there is none), if the epoch is the caller's.
CREATE FUNCTION strongroom.write_document(
  wanted uuid, in_name text, in_bytes bytea, in_tag text, expected text, OUT epoch uuid, OUT written boolean
) LANGUAGE plpgsql AS $$
DECLARE
  now_vault integer;
BEGIN
  PERFORM ${shared};
  SELECT c.vault, c.epoch INTO now_vault, epoch FROM strongroom.current c;
  written := false;
  IF epoch <> wanted THEN RETURN; END IF;
  IF expected IS NULL THEN
    INSERT INTO strongroom.document VALUES (now_vault, in_name, in_bytes, in_tag) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE strongroom.document d SET bytes = in_bytes, tag = in_tag
      WHERE d.vault = now_vault AND d.name = in_name AND d.tag = expected;
  END IF;
  written := FOUND;
END $$;
`;

/**
 * A tag identifies only the current version of a secret: the earlier ones change without it when they are deleted or sealed
 * again. What is made of the whole blob therefore expects its SHA-256, in 64 hexadecimal digits.
 */
const second = `
ALTER FUNCTION strongroom.change RENAME TO change_by_tag;

-- As change_by_tag; "expected" may also be the digest of the whole blob.
CREATE FUNCTION strongroom.change(in_vault integer, in_path text, in_blob bytea, expected text) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
  IF expected IS NULL OR pg_catalog.length(expected) <> 64 THEN
    RETURN strongroom.change_by_tag(in_vault, in_path, in_blob, expected);
  END IF;
  PERFORM FROM strongroom.secret s WHERE s.vault = in_vault AND s.path = in_path
    AND pg_catalog.encode(pg_catalog.sha256(s.blob), 'hex') = expected FOR UPDATE;
  RETURN CASE WHEN FOUND THEN strongroom.change_by_tag(in_vault, in_path, in_blob, 'present') END;
END $$;
`;

/**
 * The spaces beside the secrets: a table of their own, so that they cost reads, lists and counts of secrets nothing, and a
 * server of an earlier version sees no row of them.
 */
const third = `
CREATE TABLE strongroom.blob (
  vault integer NOT NULL,
  space text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  blob bytea NOT NULL,
  PRIMARY KEY (vault, space, path)
);
ALTER TABLE strongroom.blob ALTER blob SET STORAGE EXTERNAL;

-- Whether a blob is in the expected state, see change.
CREATE FUNCTION strongroom.is_as(blob bytea, expected text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN expected IS NULL OR expected = 'present' THEN true
    WHEN pg_catalog.length(expected) = 64 THEN pg_catalog.encode(pg_catalog.sha256(blob), 'hex') = expected
    ELSE pg_catalog.encode(pg_catalog.substr(blob, 10, 12), 'hex') = expected
  END;
$$;

-- Makes one change beside the secrets; returns false when the path is not in the expected state.
CREATE FUNCTION strongroom.change_beside(
  in_vault integer, in_space text, in_path text, in_blob bytea, expected text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF expected = 'absent' AND in_blob IS NULL THEN
    PERFORM FROM strongroom.blob b WHERE b.vault = in_vault AND b.space = in_space AND b.path = in_path;
    RETURN NOT FOUND;
  ELSIF expected = 'absent' THEN
    INSERT INTO strongroom.blob VALUES (in_vault, in_space, in_path, in_blob) ON CONFLICT DO NOTHING;
    RETURN FOUND;
  ELSIF in_blob IS NULL THEN
    DELETE FROM strongroom.blob b WHERE b.vault = in_vault AND b.space = in_space AND b.path = in_path
      AND strongroom.is_as(b.blob, expected);
    RETURN FOUND OR expected IS NULL;
  ELSIF expected IS NULL THEN
    INSERT INTO strongroom.blob VALUES (in_vault, in_space, in_path, in_blob)
      ON CONFLICT (vault, space, path) DO UPDATE SET blob = excluded.blob;
    RETURN true;
  END IF;
  UPDATE strongroom.blob b SET blob = in_blob WHERE b.vault = in_vault AND b.space = in_space AND b.path = in_path
    AND strongroom.is_as(b.blob, expected);
  RETURN FOUND;
END $$;

-- Whether the path has the expected tag, until the end of the transaction.
CREATE FUNCTION strongroom.keeps(in_vault integer, in_space text, in_path text, expected text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF in_space = 'secrets' THEN
    PERFORM FROM strongroom.secret s WHERE s.vault = in_vault AND s.path = in_path
      AND strongroom.is_as(s.blob, expected) FOR SHARE;
  ELSE
    PERFORM FROM strongroom.blob b WHERE b.vault = in_vault AND b.space = in_space AND b.path = in_path
      AND strongroom.is_as(b.blob, expected) FOR SHARE;
  END IF;
  RETURN FOUND;
END $$;

-- As commit_many, in any spaces.
CREATE FUNCTION strongroom.commit_spaces(
  wanted uuid, spaces text[], paths text[], starts integer[], lengths integer[], blobs bytea, expected text[],
  OUT epoch uuid, OUT refused integer
) LANGUAGE plpgsql AS $$
DECLARE
  now_vault integer;
  i integer;
  new_blob bytea;
  added integer;
  holds boolean;
  total integer := 0;
  refusal integer;
BEGIN
  PERFORM ${shared};
  SELECT c.vault, c.epoch INTO now_vault, epoch FROM strongroom.current c;
  IF epoch <> wanted THEN RETURN; END IF;
  BEGIN
    FOR i IN SELECT g.at FROM pg_catalog.generate_subscripts(paths, 1) AS g (at)
      ORDER BY spaces[g.at] COLLATE "C", paths[g.at] COLLATE "C"
    LOOP
      new_blob := CASE WHEN lengths[i] >= 0 THEN pg_catalog.substr(blobs, starts[i], lengths[i]) END;
      IF lengths[i] = -2 THEN
        holds := strongroom.keeps(now_vault, spaces[i], paths[i], expected[i]);
      ELSIF spaces[i] = 'secrets' THEN
        added := strongroom.change(now_vault, paths[i], new_blob, expected[i]);
        holds := added IS NOT NULL;
        total := total + COALESCE(added, 0);
      ELSE
        holds := strongroom.change_beside(now_vault, spaces[i], paths[i], new_blob, expected[i]);
      END IF;
      IF NOT holds THEN refusal := LEAST(refusal, i - 1); END IF;
    END LOOP;
    IF refusal IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'SR001'; END IF;
    IF total <> 0 THEN PERFORM strongroom.count_added(now_vault, total); END IF;
  EXCEPTION WHEN SQLSTATE 'SR001' THEN
    refused := refusal;
  END;
END $$;
`;

/** Documents that change with the vault or its header change in the same transaction. */
const fourth = `
-- As start_vault; the new vault has these documents: document i is at starts[i] in bytes, counted from 1.
CREATE FUNCTION strongroom.start_vault_with(
  wanted uuid, next uuid, in_header bytea, names text[], tags text[], starts integer[], lengths integer[], bytes bytea,
  OUT epoch uuid, OUT kept integer, OUT made integer
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT s.epoch, s.kept, s.made INTO epoch, kept, made FROM strongroom.start_vault(wanted, next, in_header) s;
  IF made IS NULL THEN RETURN; END IF;
  INSERT INTO strongroom.document
    SELECT made, names[g.at], pg_catalog.substr(bytes, starts[g.at], lengths[g.at]), tags[g.at]
    FROM pg_catalog.generate_subscripts(names, 1) AS g (at);
END $$;

-- As replace_header, and writes a document over the one with the expected tag; "replaced" is null, and nothing changed, when
-- that one has another tag.
CREATE FUNCTION strongroom.replace_header_with(
  wanted uuid, next uuid, in_header bytea, before bytea, in_name text, in_bytes bytea, in_tag text, expected text,
  OUT epoch uuid, OUT replaced boolean
) LANGUAGE plpgsql AS $$
DECLARE
  is_written boolean;
BEGIN
  SELECT r.epoch, r.replaced INTO epoch, replaced FROM strongroom.replace_header(wanted, next, in_header, before) r;
  IF NOT replaced THEN RETURN; END IF;
  SELECT w.written INTO is_written FROM strongroom.write_document(next, in_name, in_bytes, in_tag, expected) w;
  IF NOT is_written THEN RAISE EXCEPTION USING ERRCODE = 'SR001'; END IF;
EXCEPTION WHEN SQLSTATE 'SR001' THEN
  epoch := wanted;
  replaced := NULL;
END $$;
`;

export const migrations: readonly string[] = [first, second, third, fourth];
