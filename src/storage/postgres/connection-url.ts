/** URL of a database, as libpq writes it: only the parts that name a server, a database and TLS. */
import { readFileSync } from "node:fs";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { integer } from "../../config/readers.js";
import { StartError, systemCode } from "../../errors.js";

export type ConnectionTarget = {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user?: string;
  readonly ssl: false | ConnectionOptions;
};

type Parameters = ReadonlyMap<string, string>;

const known = ["host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey"];
/**
 * Parameters of libpq and of other clients that have no meaning here. Only these are named in a message: anything else may be a
 * part of the password.
 */
const named = new Set(
  `application_name channel_binding client_encoding connect_timeout connection_limit dbname fallback_application_name
  gssdelegation gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname
  load_balance_hosts max_protocol_version min_protocol_version options passfile pgbouncer pool_timeout replication
  require_auth requirepeer schema service servicefile ssl ssl_max_protocol_version ssl_min_protocol_version sslcertmode
  sslcompression sslcrl sslcrldir sslkeylogfile sslnegotiation sslpassword sslsni target_session_attrs tcp_user_timeout
  uselibpqcompat user`.split(/\s+/),
);

/** Allowed parameters that change nothing: the server refuses a standby anyway. */
const harmless: Readonly<Record<string, readonly string[]>> = {
  target_session_attrs: ["any", "primary", "read-write"],
  sslnegotiation: ["postgres"],
};

const modes = ["disable", "require", "verify-ca", "verify-full"];
const local = ["localhost", "127.0.0.1", "::1"];

/**
 * Reads `postgres://user@host:port/database?sslmode=…`; a host that begins with a slash is the directory of a Unix socket.
 * Without `sslmode`, it is `disable` for this machine and `verify-full` for any other.
 * @throws StartError that never repeats the URL.
 */
export function readConnectionUrl(text: string): ConnectionTarget {
  const url = parse(text);
  const parameters: Parameters = new Map(url.searchParams);
  if (parameters.has("password")) throw refused("it contains a password", "use PGPASSFILE or a password file");
  // DANGER: after an unescaped ? all the rest is part of the password, and an @ follows.
  const mayBeNamed = !url.search.includes("@");
  for (const [name, value] of parameters) refuseUnknown(name, value, mayBeNamed);
  if (url.password !== "") throw refused("it contains a password", "use PGPASSFILE or a password file");
  const given = parameters.get("host") ?? (decoded(url.hostname) || "localhost");
  const host = given.replace(/^\[(.*)\]$/, "$1");
  const database = decoded(url.pathname.slice(1));
  if (database === "") throw refused("it names no database", "append /DATABASE");
  const port = readPort(parameters.get("port") ?? (url.port || "5432"));
  return {
    host,
    port,
    database,
    ...(url.username !== "" && { user: decoded(url.username) }),
    ssl: tlsOptions(host, parameters),
  };
}

/** @throws StartError */
function refuseUnknown(name: string, value: string, mayBeNamed: boolean): void {
  if (known.includes(name) || harmless[name]?.includes(value)) return;
  const problem =
    mayBeNamed && named.has(name) ? `its parameter ${name} is not supported` : "it has an unknown parameter";
  const why =
    name === "channel_binding" ? "sslmode=verify-full, which checks the server's certificate, replaces it; " : "";
  throw refused(problem, `${why}use ${known.join(", ")} only`);
}

/** Host and database, for people to read. */
export function shownTarget({ host, port, database }: ConnectionTarget): string {
  if (host.startsWith("/")) return `postgres:///${database}?host=${host}`;
  return `postgres://${host.includes(":") ? `[${host}]` : host}${port === 5432 ? "" : `:${port}`}/${database}`;
}

function readPort(text: string): number {
  try {
    return integer(1, 65_535)(text);
  } catch {
    throw refused("its port is invalid", "use 1 to 65535");
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused("it has an invalid % escape", "write %25 for a percent sign");
  }
}

function parse(text: string): URL {
  try {
    const url = new URL(text);
    if (["postgres:", "postgresql:"].includes(url.protocol)) return url;
  } catch {
    // the error would repeat the URL
  }
  throw refused("it is not the URL of a PostgreSQL database", "write postgres://USER@HOST:PORT/DATABASE");
}

function tlsOptions(host: string, parameters: Parameters): false | ConnectionOptions {
  const isLocal = host.startsWith("/") || local.includes(host);
  const mode = parameters.get("sslmode") ?? (isLocal ? "disable" : "verify-full");
  if (!modes.includes(mode)) throw refused("its sslmode is unknown", `use one of ${modes.join(", ")}`);
  if (mode === "disable" || host.startsWith("/")) return false;
  const files = { ca: readParameterFile(parameters, "sslrootcert"), cert: readParameterFile(parameters, "sslcert") };
  const key = readParameterFile(parameters, "sslkey");
  const given = {
    rejectUnauthorized: true, // the default, except with NODE_TLS_REJECT_UNAUTHORIZED=0
    ...(files.ca && { ca: files.ca }),
    ...(files.cert && { cert: files.cert }),
    ...(key && { key }),
  };
  // The client starts TLS on an open socket, and would check for the name localhost instead of an IP address.
  if (mode === "verify-full") return { ...given, checkServerIdentity: (_, found) => checkServerIdentity(host, found) };
  if (mode === "require" && files.ca === undefined) return { ...given, rejectUnauthorized: false }; // as libpq does
  return { ...given, checkServerIdentity: () => undefined };
}

function readParameterFile(parameters: Parameters, name: string): Buffer | undefined {
  const file = parameters.get(name);
  if (file === undefined || file === "system") return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw refused(`its ${name} cannot be read (${systemCode(error)})`, "correct the path or the file's mode");
  }
}

function refused(problem: string, remedy: string): StartError {
  return new StartError(`the URL of the database cannot be used, ${problem}: ${remedy}`, 2);
}
