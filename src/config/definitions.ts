/** Table of the settings: flag, environment variable, default, meaning and reader of each. */
import { defaultHome } from "../client/default-home.js";
import { type LogLevel, logLevels } from "../log.js";
import {
  choiceReader,
  durationOrNever,
  integer,
  milliseconds,
  readHost,
  readNames,
  readOptionalPort,
  readOptionalSocketPath,
  readPath,
  readSocketPath,
  readStoreUrl,
  readToken,
} from "./readers.js";

export interface Settings {
  readonly home: string;
  /** URL of a database, without a password. Null: files in the home. */
  readonly store: string | null;
  readonly storePasswordFile: string | null;
  readonly storeConnections: number;
  readonly host: string;
  readonly port: number;
  readonly serverNames: readonly string[];
  /** Null: `strongroom.sock` in the home. `off`: none. */
  readonly socket: string | null;
  /** Milliseconds; 0 is never, null leaves it to `idleTimeoutMs`. */
  readonly idleTimeout: number | null;
  readonly idleTimeoutMs: number;
  readonly token: string | null;
  readonly tokenFile: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  readonly scryptLogN: number;
  readonly maxValueBytes: number;
  readonly maxBatchBytes: number;
  readonly keepVersions: number;
  readonly keepVersionBytes: number;
  /** 0: for ever. */
  readonly keepTrashDays: number;
  readonly cacheBytes: number;
  readonly maxConnections: number;
  readonly audit: (typeof auditModes)[number];
  readonly auditOnFailure: (typeof auditFailures)[number];
  /** Null: while `strongroom review` needs it. */
  readonly reviewPage: boolean | null;
  readonly logLevel: LogLevel;
  /** Port of the API for Vault's clients. Null: it is off. */
  readonly vaultPort: number | null;
  /** Null: there is no broker. */
  readonly brokerPort: number | null;
  /** Path of the Unix socket at which the broker also listens. Null: none. */
  readonly brokerSocket: string | null;
  /** File of PEM certificates. */
  readonly upstreamCa: string | null;
  readonly approveWith: (typeof approvers)[number];
}

/** Events that the audit log records: none, all but reads and lists of secrets, or all. */
const auditModes = ["off", "changes", "all"] as const;
const auditFailures = ["allow", "deny"] as const;

/** Credential that approves a request at the broker. */
const approvers = ["token", "passphrase"] as const;

type Environment = Readonly<Record<string, string | undefined>>;

export type Definition<T> = {
  /** Null if it has only a variable. */
  readonly flag: string | null;
  readonly variable: string;
  readonly meaning: string;
  /** For help and documents, where the default itself does not say it. */
  readonly shownDefault?: string;
  readonly fallback: (environment: Environment) => T;
  /** @throws Problem */
  readonly read: (text: string) => T;
};

/** Returns the default as help and documents show it. */
export function formatDefault({ shownDefault, fallback }: Definition<unknown>): string {
  return shownDefault ?? String(fallback({}));
}

/** Time without activity after which the vault locks. */
const defaultIdleTime = "15m";
const readIdleMs = milliseconds(365 * 24 * 3600 * 1000);

// biome-ignore format: one line a setting, so that they can be compared
export const definitions: { readonly [K in keyof Settings]: Definition<Settings[K]> } = {
  home: { flag: "home", variable: "STRONGROOM_HOME", meaning: "directory of the vault, the token and the certificate", shownDefault: "the user's data directory", fallback: (environment) => defaultHome(environment), read: readPath },
  store: { flag: "store", variable: "STRONGROOM_STORE", meaning: "PostgreSQL database of the vault, as postgres://USER@HOST/DATABASE, without a password", shownDefault: "files in the home", fallback: () => null, read: readStoreUrl },
  storePasswordFile: { flag: "store-password-file", variable: "STRONGROOM_STORE_PASSWORD_FILE", meaning: "file that holds the database's password", shownDefault: "PGPASSFILE, or ~/.pgpass", fallback: () => null, read: readPath },
  // a rotation and a snapshot hold one connection each
  storeConnections: { flag: "store-connections", variable: "STRONGROOM_STORE_CONNECTIONS", meaning: "maximum number of connections to the database, 3 to 100", fallback: () => 10, read: integer(3, 100) },
  host: { flag: "host", variable: "STRONGROOM_HOST", meaning: "address to listen on", fallback: () => "127.0.0.1", read: readHost },
  port: { flag: "port", variable: "STRONGROOM_PORT", meaning: "port to listen on; 0 picks a free one", fallback: () => 13100, read: integer(0, 65535) },
  serverNames: { flag: "server-names", variable: "STRONGROOM_SERVER_NAMES", meaning: "additional host names of the server, separated by commas", shownDefault: "none", fallback: () => [], read: readNames },
  socket: { flag: "socket", variable: "STRONGROOM_SOCKET", meaning: "Unix socket for the owner's own commands; off, or --no-socket, is none", shownDefault: "strongroom.sock in the home", fallback: () => null, read: readSocketPath },
  idleTimeout: { flag: "idle-timeout", variable: "STRONGROOM_IDLE_TIMEOUT", meaning: "time without activity after which the vault locks, such as 8h, or never", shownDefault: defaultIdleTime, fallback: () => null, read: durationOrNever(365 * 24 * 3600 * 1000) },
  idleTimeoutMs: { flag: "idle-timeout-ms", variable: "STRONGROOM_IDLE_TIMEOUT_MS", meaning: "the same in milliseconds, or as 15m; 0 is never; --idle-timeout wins", fallback: () => readIdleMs(defaultIdleTime), read: readIdleMs },
  token: { flag: null, variable: "STRONGROOM_TOKEN", meaning: "the bearer token (no flag: other users can read a command's arguments)", shownDefault: "read from the token file", fallback: () => null, read: readToken },
  tokenFile: { flag: "token-file", variable: "STRONGROOM_TOKEN_FILE", meaning: "file that holds the bearer token", shownDefault: "token in the home, made at first start", fallback: () => null, read: readPath },
  tlsCert: { flag: "tls-cert", variable: "STRONGROOM_TLS_CERT", meaning: "certificate file, in PEM; goes with the key", shownDefault: "tls/cert.pem in the home, made at first start", fallback: () => null, read: readPath },
  tlsKey: { flag: "tls-key", variable: "STRONGROOM_TLS_KEY", meaning: "private key file of the certificate, in PEM", shownDefault: "tls/key.pem in the home, made at first start", fallback: () => null, read: readPath },
  scryptLogN: { flag: "scrypt-log-n", variable: "STRONGROOM_SCRYPT_LOG_N", meaning: "minimum cost of key derivation: log2 of scrypt's N (14-20); a vault below it is upgraded at unlock", fallback: () => 17, read: integer(14, 20) },
  maxValueBytes: { flag: "max-value-bytes", variable: "STRONGROOM_MAX_VALUE_BYTES", meaning: "maximum size of a value, in bytes of UTF-8; at most 67108864", fallback: () => 1_048_576, read: integer(1, 64 * 2 ** 20) },
  maxBatchBytes: { flag: "max-batch-bytes", variable: "STRONGROOM_MAX_BATCH_BYTES", meaning: "maximum size of a batch's body, and of the secrets that it returns, in bytes; at most 268435456", fallback: () => 16 * 2 ** 20, read: integer(65_536, 256 * 2 ** 20) },
  keepVersions: { flag: "keep-versions", variable: "STRONGROOM_KEEP_VERSIONS", meaning: "maximum number of earlier versions that a secret keeps, 0 to 100", fallback: () => 10, read: integer(0, 100) },
  keepVersionBytes: { flag: "keep-version-bytes", variable: "STRONGROOM_KEEP_VERSION_BYTES", meaning: "maximum size of a secret's earlier versions, sealed, in bytes; the newest of them is kept whatever its size", fallback: () => 262_144, read: integer(0, 64 * 2 ** 20) },
  keepTrashDays: { flag: "keep-trash-days", variable: "STRONGROOM_KEEP_TRASH_DAYS", meaning: "days after which a secret in the trash is destroyed, 0 to 3650; 0: never", fallback: () => 30, read: integer(0, 3650) },
  cacheBytes: { flag: "cache-bytes", variable: "STRONGROOM_CACHE_BYTES", meaning: "memory for recently used ciphertext, in bytes; 0 reads files each time", fallback: () => 128 * 2 ** 20, read: integer(0, 64 * 2 ** 30) },
  maxConnections: { flag: "max-connections", variable: "STRONGROOM_MAX_CONNECTIONS", meaning: "maximum number of connections at once; at most a quarter of them without a valid token", fallback: () => 1024, read: integer(10, 65_535) },
  audit: { flag: "audit", variable: "STRONGROOM_AUDIT", meaning: "what the audit log records: off, changes (all but reads and lists), or all", fallback: () => "changes", read: choiceReader(auditModes) },
  auditOnFailure: { flag: "audit-on-failure", variable: "STRONGROOM_AUDIT_ON_FAILURE", meaning: "while the audit log cannot be written: allow operations on secrets, or deny them with 503", fallback: () => "allow", read: choiceReader(auditFailures) },
  reviewPage: { flag: "review-page", variable: "STRONGROOM_REVIEW_PAGE", meaning: "the page that strongroom review opens: on serves it always, off never", shownDefault: "while strongroom review needs it", fallback: () => null, read: (text) => choiceReader(["on", "off"])(text) === "on" },
  logLevel: { flag: "log-level", variable: "STRONGROOM_LOG_LEVEL", meaning: `how much is logged: ${logLevels.join(", ")}`, fallback: () => "info", read: choiceReader(logLevels) },
  vaultPort: { flag: "vault-port", variable: "STRONGROOM_VAULT_PORT", meaning: "port for clients of HashiCorp Vault and OpenBao, 8200 by custom; 0 picks a free one, off is none", shownDefault: "off", fallback: () => null, read: readOptionalPort },
  brokerPort: { flag: "broker-port", variable: "STRONGROOM_BROKER_PORT", meaning: "port on 127.0.0.1 through which programs use secrets without reading them; 0 picks a free one, off is none", shownDefault: "off", fallback: () => null, read: readOptionalPort },
  brokerSocket: { flag: "broker-socket", variable: "STRONGROOM_BROKER_SOCKET", meaning: "Unix socket at which the broker also listens, for containers without a network; off is none", shownDefault: "off", fallback: () => null, read: readOptionalSocketPath },
  upstreamCa: { flag: "upstream-ca", variable: "STRONGROOM_UPSTREAM_CA", meaning: "file of certificates in PEM that the broker trusts beside the public roots", shownDefault: "none", fallback: () => null, read: readPath },
  approveWith: { flag: "approve-with", variable: "STRONGROOM_APPROVE_WITH", meaning: "what approves a request at the broker: the root token, or also the passphrase", fallback: () => "token", read: choiceReader(approvers) },
};
