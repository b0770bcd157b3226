/** Database failures: which ones end a connection, which ones may be retried, and what clients and operators are shown. */
import { StartError, systemCode, VaultError } from "../../errors.js";

/** SQLSTATE of deadlocks and serialization failures: nothing was changed, and a retry may succeed. */
const repeatable = new Set(["40001", "40P01"]);

/** Returns the SQLSTATE of an error that the database reported; null for a failed connection or a timeout. */
function sqlState(error: unknown): string | null {
  const code = systemCode(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && error instanceof Error && "severity" in error
    ? code
    : null;
}

export function isRepeatable(error: unknown): boolean {
  return repeatable.has(sqlState(error) ?? "");
}

/** Whether the connection is unusable: it ended, did not answer in time, or was closed by the database. */
export function endsConnection(error: unknown): boolean {
  if (error instanceof VaultError) return false;
  const state = sqlState(error);
  return state === null || state.startsWith("57P") || state.startsWith("08");
}

/**
 * Whether the session may not write. It keeps that from its start, or from a failover, after the database has become writable
 * again: a new one may do so at once.
 */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === "25006";
}

/** Whether the connection ended, rather than timed out: a new one may work at once. */
export function isBroken(error: unknown): boolean {
  return endsConnection(error) && !isTimeout(error);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout/i.test(error.message);
}

/** The cause is for the log, which leaves out its message. */
export function databaseUnavailable(cause: unknown): VaultError {
  if (cause instanceof VaultError) return cause;
  if (cause instanceof StartError) return new VaultError("UNAVAILABLE", cause.message, { cause }); // see `Sessions.check`
  const refusal = refusalText(sqlState(cause), remedies);
  if (refusal !== null) return new VaultError("UNAVAILABLE", refusal, { cause });
  const problem = "the database does not answer or refuses";
  return new VaultError("UNAVAILABLE", `${problem}: try again, and check the server's log and the database`, { cause });
}

const changedTables = "its tables were changed by hand: restore a backup into another database";

const madeSince = "another user has just created the schema strongroom: start again, which says whose it is";

/** By SQLSTATE. */
type Remedies = Readonly<Record<string, string>>;

const remedies: Remedies = {
  "25006": "it is read-only: connect to the primary, or reset default_transaction_read_only",
  "28000": "it refuses this user: check pg_hba.conf and the user's name",
  "28P01": "the password is wrong or has expired: correct the password file",
  "3D000": "there is no such database: create it",
  "42501":
    "the user's rights do not suffice: let the owner of the schema strongroom run  strongroom doctor --fix  and grant what docs/postgres.md says",
  "42703": changedTables, // no such column
  "42883": changedTables, // function
  "42P01": changedTables, // table
  "53100": "its disk is full: free space there",
  "53300": "it has too many connections: lower the pool size or raise max_connections",
  "55000": "it accepts no connections: run  ALTER DATABASE … ALLOW_CONNECTIONS true",
};

const startRemedies: Remedies = {
  ...remedies,
  "23505": madeSince, // by a transaction that was still open
  "42723": changedTables, // the function exists, although the schema's version says it does not
  "42P06": madeSince,
  "42P07": changedTables, // as 42723, of a table
};

function refusalText(state: string | null, texts: Remedies): string | null {
  const text = state === null ? undefined : texts[state];
  return text === undefined ? null : `the database cannot be used (${state}): ${text}`;
}

/** Says why a start cannot use the database, without any part of its URL. */
export function databaseStartError(error: unknown): StartError {
  if (error instanceof StartError) return error;
  const refusal = refusalText(sqlState(error), startRemedies);
  if (refusal !== null) return new StartError(refusal);
  const code = systemCode(error) ?? (isTimeout(error) ? "no answer in time" : undefined);
  const remedy = "check that it runs, its address and its TLS settings";
  return new StartError(`the database cannot be used${code === undefined ? "" : ` (${code})`}: ${remedy}`);
}
