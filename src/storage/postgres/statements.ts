/**
 * Statements of the engine, each prepared once per connection under its name. All but `serverConnections` and `foreignRows`
 * also return the epoch of what they saw. Secrets are read in subqueries on the current vault: with `sessionSettings`, their
 * only plan is the primary key's index.
 *
 * DANGER: anyone who can write to the database can make a row of any size. A value of 512 MiB as text ends the process,
 * because the client library cannot return it: every column that is not of fixed size has a limit here.
 */
import { maxPathBytes } from "../../paths/secret-path.js";
import { maxDocumentBytes, type Space } from "../secret-store.js";

/** Upper bound for a blob, in bytes: two values of the largest size, and the earlier versions. */
export const maxBlobBytes = 255 * 2 ** 20;

/** Stands for a blob that is larger. */
export const tooLarge = "too large";

export const maxHeaderBytes = 16_384;

/** Heads that one answer returns, in bytes. */
export const maxHeadsBytes = 64 * 2 ** 20;

export type Statement = {
  readonly name: string;
  readonly text: string;
  /** Must not take effect after a failure was reported. */
  readonly isChange?: boolean;
};

/** Condition that a row `s` is foreign. */
const isForeign = `(s.blob IS NULL OR octet_length(s.blob) > ${maxBlobBytes}
  OR s.path IS NULL OR s.path = '' OR octet_length(s.path) > ${maxPathBytes}
  OR NOT EXISTS (SELECT FROM strongroom.vault v WHERE v.id = s.vault))`;

/** Each message, with a percent sign for the number of rows, and what its rows are selected from. */
const foreignRows = [
  ["strongroom.current has % rows instead of one", "strongroom.current HAVING count(*) <> 1"],
  ["% rows of strongroom.current have no epoch", "strongroom.current WHERE epoch IS NULL HAVING count(*) > 0"],
  [
    "strongroom.current names no vault, although there are %",
    `strongroom.vault HAVING count(*) > 0
  AND NOT EXISTS (SELECT FROM strongroom.current c JOIN strongroom.vault v ON v.id = c.vault AND v.header IS NOT NULL)`,
  ],
  [
    "% rows of strongroom.secret are no secrets of a vault",
    `strongroom.secret s WHERE ${isForeign} HAVING count(*) > 0`,
  ],
  [
    "% rows of strongroom.blob are neither deleted secrets nor keys of a vault",
    `strongroom.blob s WHERE s.space NOT IN ('trash', 'keys') OR ${isForeign} HAVING count(*) > 0`,
  ],
].map(([what, where]) => `SELECT replace('${what}', '%', count(*)::text) FROM ${where}`);

/** No server writes a longer tag. */
const documentTag = "left(d.tag, 64)";

export const statements = {
  serverConnections: {
    name: "server-connections",
    text: `SELECT count(*) FROM pg_catalog.pg_stat_activity
  WHERE datname = current_database() AND application_name = $1`,
  },
  foreignRows: { name: "foreign-rows", text: foreignRows.join("\nUNION ALL ") },
  header: {
    name: "header",
    text: `SELECT c.epoch, c.vault, substring(v.header FROM 1 FOR ${maxHeaderBytes + 1})
  FROM strongroom.current c LEFT JOIN strongroom.vault v ON v.id = c.vault`,
  },
  epoch: { name: "epoch", text: "SELECT c.epoch FROM strongroom.current c" },
  currentRun: {
    name: "current-run",
    // A restore into the running database makes a new file for the table; a copy by TEMPLATE has files of the same names.
    text: `SELECT c.epoch, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
  pg_relation_filenode('strongroom.secret'), (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) FROM strongroom.current c`,
  },
  commitOne: {
    isChange: true,
    name: "commit-one",
    text: "SELECT epoch, refused FROM strongroom.commit_one($1, $2, $3, $4)",
  },
  commitMany: {
    isChange: true,
    name: "commit-spaces",
    text: "SELECT epoch, refused FROM strongroom.commit_spaces($1, $2, $3, $4, $5, $6, $7)",
  },
  startVault: {
    isChange: true,
    name: "start-vault-with",
    text: "SELECT epoch, kept, made FROM strongroom.start_vault_with($1, $2, $3, $4, $5, $6, $7, $8)",
  },
  replaceHeader: {
    isChange: true,
    name: "replace-header",
    text: "SELECT epoch, replaced FROM strongroom.replace_header($1, $2, $3, $4)",
  },
  replaceHeaderWith: {
    isChange: true,
    name: "replace-header-with",
    text: "SELECT epoch, replaced FROM strongroom.replace_header_with($1, $2, $3, $4, $5, $6, $7, $8)",
  },
  readDocument: {
    name: "read-document",
    text: `SELECT c.epoch, substring(d.bytes FROM 1 FOR ${maxDocumentBytes + 1}), ${documentTag}
  FROM strongroom.current c LEFT JOIN strongroom.document d ON d.vault = c.vault AND d.name = $1`,
  },
  documentTags: {
    name: "document-tags",
    text: `SELECT c.epoch, (SELECT string_agg(COALESCE(${documentTag}, ''), ',' ORDER BY n.place)
    FROM unnest($1::text[]) WITH ORDINALITY n (name, place)
    LEFT JOIN strongroom.document d ON d.vault = c.vault AND d.name = n.name)
  FROM strongroom.current c`,
  },
  writeDocument: {
    isChange: true,
    name: "write-document",
    text: "SELECT epoch, written FROM strongroom.write_document($1, $2, $3, $4, $5)",
  },
} as const satisfies Readonly<Record<string, Statement>>;

/** Statements that read the blobs of one space. */
type SpaceStatements = ReturnType<typeof spaceStatements>;

const counts: Partial<Readonly<Record<Space, string>>> = {
  secrets: `SELECT LEAST(GREATEST(SUM(n.secrets), 0), ${Number.MAX_SAFE_INTEGER})
  FROM strongroom.secret_count n WHERE n.vault = c.vault`,
};

function spaceStatements(space: Space) {
  const ofVault =
    space === "secrets"
      ? "FROM strongroom.secret s WHERE s.vault = c.vault"
      : `FROM strongroom.blob s WHERE s.vault = c.vault AND s.space = '${space}'`;
  const count = counts[space] ?? `SELECT count(*) ${ofVault}`;
  const blob = `CASE WHEN octet_length(s.blob) <= ${maxBlobBytes} THEN s.blob::text ELSE '${tooLarge}' END`;
  const first = "substring(s.blob FROM 1 FOR $2::integer)";
  const after = `${ofVault} AND s.path >= $1 AND s.path > $2 AND octet_length(s.path) <= ${maxPathBytes}`;
  const page = `${after} ORDER BY s.path LIMIT $3`;
  const pageBelow = `${after} AND s.path < $4 ORDER BY s.path LIMIT $3`;
  const texts = {
    count: `SELECT c.epoch, (${count}) FROM strongroom.current c`,
    read: `SELECT c.epoch, (SELECT ${blob} ${ofVault} AND s.path = $1) FROM strongroom.current c`,
    readHead: `SELECT c.epoch, (SELECT ${first} ${ofVault} AND s.path = $1) FROM strongroom.current c`,
    list: listStatement(page),
    listBelow: listStatement(pageBelow),
    listHeads: headsStatement(page, "$4"),
    listHeadsBelow: headsStatement(pageBelow, "$5"),
  };
  const named = Object.entries(texts).map(([name, text]) => [name, { name: `${name} ${space}`, text }]);
  return Object.fromEntries(named) as Readonly<Record<keyof typeof texts, Statement>>;
}

function listStatement(paths: string): string {
  return `SELECT c.epoch, to_json(ARRAY(SELECT s.path ${paths})) FROM strongroom.current c`;
}

/** Heads in hexadecimal digits, separated by commas, in the order of the paths. */
function headsStatement(paths: string, most: string): string {
  return `SELECT c.epoch, p.paths, p.heads FROM strongroom.current c CROSS JOIN LATERAL (
  SELECT json_agg(s.path ORDER BY s.path) AS paths, string_agg(encode(s.head, 'hex'), ',' ORDER BY s.path) AS heads
  FROM (SELECT s.path, COALESCE(strongroom.head(s.blob, ${most}::integer), '') AS head ${paths}) s) p`;
}

export const statementsIn: Readonly<Record<Space, SpaceStatements>> = {
  secrets: spaceStatements("secrets"),
  trash: spaceStatements("trash"),
  keys: spaceStatements("keys"),
};
