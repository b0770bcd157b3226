/**
 * Statements of the engine, each prepared once per connection under its name. All but `serverConnections` also return the
 * epoch of what they saw. Secrets are read in subqueries on the current vault: with `sessionSettings`, their only plan is the
 * primary key's index.
 */

export type Statement = {
  readonly name: string;
  readonly text: string;
  /** Must not take effect after a failure was reported. */
  readonly isChange?: boolean;
};

const ofCurrent = "FROM strongroom.secret s WHERE s.vault = c.vault AND s.path = $1) FROM strongroom.current c";
const pathsAfter = "FROM strongroom.secret s WHERE s.vault = c.vault AND s.path >= $1 AND s.path > $2";

export const statements = {
  serverConnections: {
    name: "server-connections",
    text: `SELECT count(*) FROM pg_catalog.pg_stat_activity
  WHERE datname = current_database() AND application_name = $1`,
  },
  header: {
    name: "header",
    text: "SELECT c.epoch, c.vault, v.header FROM strongroom.current c LEFT JOIN strongroom.vault v ON v.id = c.vault",
  },
  epoch: { name: "epoch", text: "SELECT c.epoch FROM strongroom.current c" },
  currentRun: {
    name: "current-run",
    // A restore into the running database makes a new file for the table.
    text: `SELECT c.epoch, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
  pg_relation_filenode('strongroom.secret')) FROM strongroom.current c`,
  },
  count: {
    name: "count",
    text: `SELECT c.epoch, (SELECT COALESCE(SUM(n.secrets), 0) FROM strongroom.secret_count n WHERE n.vault = c.vault)
  FROM strongroom.current c`,
  },
  read: { name: "read", text: `SELECT c.epoch, (SELECT s.blob ${ofCurrent}` },
  readHead: {
    name: "read-head",
    text: `SELECT c.epoch, (SELECT substring(s.blob FROM 1 FOR $2::integer) ${ofCurrent}`,
  },
  list: { name: "list", text: listOf(`${pathsAfter} ORDER BY s.path LIMIT $3`) },
  listBelow: { name: "list-below", text: listOf(`${pathsAfter} AND s.path < $4 ORDER BY s.path LIMIT $3`) },
  listHeads: { name: "list-heads", text: headsOf(`${pathsAfter} ORDER BY s.path LIMIT $3`, "$4") },
  listHeadsBelow: {
    name: "list-heads-below",
    text: headsOf(`${pathsAfter} AND s.path < $4 ORDER BY s.path LIMIT $3`, "$5"),
  },
  commitOne: {
    isChange: true,
    name: "commit-one",
    text: "SELECT epoch, refused FROM strongroom.commit_one($1, $2, $3, $4)",
  },
  commitMany: {
    isChange: true,
    name: "commit-many",
    text: "SELECT epoch, refused FROM strongroom.commit_many($1, $2, $3, $4, $5, $6)",
  },
  startVault: {
    isChange: true,
    name: "start-vault",
    text: "SELECT epoch, kept, made FROM strongroom.start_vault($1, $2, $3)",
  },
  replaceHeader: {
    isChange: true,
    name: "replace-header",
    text: "SELECT epoch, replaced FROM strongroom.replace_header($1, $2, $3, $4)",
  },
  readDocument: {
    name: "read-document",
    text: `SELECT c.epoch, d.bytes, d.tag
  FROM strongroom.current c LEFT JOIN strongroom.document d ON d.vault = c.vault AND d.name = $1`,
  },
  documentTag: {
    name: "document-tag",
    text: `SELECT c.epoch, d.tag
  FROM strongroom.current c LEFT JOIN strongroom.document d ON d.vault = c.vault AND d.name = $1`,
  },
  writeDocument: {
    isChange: true,
    name: "write-document",
    text: "SELECT epoch, written FROM strongroom.write_document($1, $2, $3, $4, $5)",
  },
} as const satisfies Readonly<Record<string, Statement>>;

function listOf(paths: string): string {
  return `SELECT c.epoch, to_json(ARRAY(SELECT s.path ${paths})) FROM strongroom.current c`;
}

/** Heads in hexadecimal digits, separated by commas, in the order of the paths. */
function headsOf(paths: string, most: string): string {
  return `SELECT c.epoch, p.paths, p.heads FROM strongroom.current c CROSS JOIN LATERAL (
  SELECT json_agg(s.path ORDER BY s.path) AS paths, string_agg(encode(s.head, 'hex'), ',' ORDER BY s.path) AS heads
  FROM (SELECT s.path, strongroom.head(s.blob, ${most}::integer) AS head ${paths}) s) p`;
}
