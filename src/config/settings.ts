/**
 * Owns the settings: one table that says of each its flag, its environment variable, its default, what it means and how
 * it is read. Flag goes before environment, environment before default. All problems are told at once.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import envPaths from "env-paths";
import { StartError } from "../errors.js";
import { type LogLevel, logLevels } from "../log.js";
import { integer, Problem, readHost, readLogLevel, readNames, readToken } from "./readers.js";

export interface Settings {
  readonly home: string;
  readonly host: string;
  readonly port: number;
  readonly serverNames: readonly string[];
  readonly idleTimeoutMs: number;
  readonly token: string | null;
  readonly tokenFile: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  readonly scryptLogN: number;
  readonly maxValueBytes: number;
  readonly cacheBytes: number;
  readonly logLevel: LogLevel;
}

export type Definition<T> = {
  /** Null: environment only. */
  readonly flag: string | null;
  readonly variable: string;
  readonly meaning: string;
  /** As help and README show it. */
  readonly shownDefault: string;
  readonly fallback: () => T;
  /** @throws Problem */
  readonly read: (text: string) => T;
};

export const definitions: { readonly [K in keyof Settings]: Definition<Settings[K]> } = {
  home: {
    flag: "home",
    variable: "STRONGROOM_HOME",
    meaning: "directory of the vault, the token and the certificate",
    shownDefault: "the user's data directory",
    fallback: () => resolve(envPaths("strongroom", { suffix: "" }).data),
    read: (text) => resolve(text),
  },
  host: {
    flag: "host",
    variable: "STRONGROOM_HOST",
    meaning: "address to listen on",
    shownDefault: "127.0.0.1",
    fallback: () => "127.0.0.1",
    read: readHost,
  },
  port: {
    flag: "port",
    variable: "STRONGROOM_PORT",
    meaning: "port to listen on; 0 picks a free one",
    shownDefault: "13100",
    fallback: () => 13100,
    read: integer(0, 65535),
  },
  serverNames: {
    flag: "server-names",
    variable: "STRONGROOM_SERVER_NAMES",
    meaning: "further names by which clients call the server, separated by commas",
    shownDefault: "none",
    fallback: () => [],
    read: readNames,
  },
  idleTimeoutMs: {
    flag: "idle-timeout-ms",
    variable: "STRONGROOM_IDLE_TIMEOUT_MS",
    meaning: "milliseconds without activity after which the vault locks; 0 is never",
    shownDefault: "900000",
    fallback: () => 900_000,
    read: integer(0, 365 * 24 * 3600 * 1000),
  },
  token: {
    flag: null,
    variable: "STRONGROOM_TOKEN",
    meaning: "the bearer token (no flag: other users can read a command's arguments)",
    shownDefault: "read from the token file",
    fallback: () => null,
    read: readToken,
  },
  tokenFile: {
    flag: "token-file",
    variable: "STRONGROOM_TOKEN_FILE",
    meaning: "file that holds the bearer token",
    shownDefault: "token in the home, made at first start",
    fallback: () => null,
    read: (text) => resolve(text),
  },
  tlsCert: {
    flag: "tls-cert",
    variable: "STRONGROOM_TLS_CERT",
    meaning: "certificate file, in PEM; goes with the key",
    shownDefault: "tls/cert.pem in the home, made at first start",
    fallback: () => null,
    read: (text) => resolve(text),
  },
  tlsKey: {
    flag: "tls-key",
    variable: "STRONGROOM_TLS_KEY",
    meaning: "private key file of the certificate, in PEM",
    shownDefault: "tls/key.pem in the home, made at first start",
    fallback: () => null,
    read: (text) => resolve(text),
  },
  scryptLogN: {
    flag: "scrypt-log-n",
    variable: "STRONGROOM_SCRYPT_LOG_N",
    meaning: "cost of key derivation for a new vault: scrypt with N = 2^this, 14 to 20",
    shownDefault: "17",
    fallback: () => 17,
    read: integer(14, 20),
  },
  maxValueBytes: {
    flag: "max-value-bytes",
    variable: "STRONGROOM_MAX_VALUE_BYTES",
    meaning: "largest value, in bytes of UTF-8; at most 67108864",
    shownDefault: "1048576",
    fallback: () => 1_048_576,
    read: integer(1, 64 * 2 ** 20),
  },
  cacheBytes: {
    flag: "cache-bytes",
    variable: "STRONGROOM_CACHE_BYTES",
    meaning: "memory for recently used ciphertext, in bytes; 0 reads files each time",
    shownDefault: "134217728",
    fallback: () => 128 * 2 ** 20,
    read: integer(0, 64 * 2 ** 30),
  },
  logLevel: {
    flag: "log-level",
    variable: "STRONGROOM_LOG_LEVEL",
    meaning: `how much is logged: ${logLevels.join(", ")}`,
    shownDefault: "info",
    fallback: () => "info",
    read: readLogLevel,
  },
};

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws StartError, exit code 2, that lists every problem. */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const problems: string[] = [];
  const flags = readFlags(args, problems);
  const read = <K extends keyof Settings>(name: K): Settings[K] =>
    readSetting<Settings[K]>(definitions[name], flags, environment, problems);
  const settings: Settings = {
    home: read("home"),
    host: read("host"),
    port: read("port"),
    serverNames: read("serverNames"),
    idleTimeoutMs: read("idleTimeoutMs"),
    token: read("token"),
    tokenFile: read("tokenFile"),
    tlsCert: read("tlsCert"),
    tlsKey: read("tlsKey"),
    scryptLogN: read("scryptLogN"),
    maxValueBytes: read("maxValueBytes"),
    cacheBytes: read("cacheBytes"),
    logLevel: read("logLevel"),
  };
  if ((settings.tlsCert === null) !== (settings.tlsKey === null)) {
    problems.push("STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY go together: set both or neither");
  }
  if (problems.length === 0) return settings;
  const list = problems.map((problem) => `  - ${problem}\n`).join("");
  throw new StartError(`the settings are not valid:\n${list}strongroom serve --help lists them all`, 2);
}

/** One setting, for a command that needs no other; `given` is its flag. @throws StartError, exit code 2 */
export function readOneSetting<K extends keyof Settings>(
  name: K,
  given: string | undefined,
  environment: Environment,
): Settings[K] {
  const definition: Definition<Settings[K]> = definitions[name];
  const problems = given === "" ? [`--${definition.flag} needs a value`] : [];
  const flags = new Map(given === undefined ? [] : [[definition.flag ?? "", given]]);
  const value = readSetting<Settings[K]>(definition, flags, environment, problems);
  if (problems.length > 0) throw new StartError(problems.join("; "), 2);
  return value;
}

function readFlags(args: readonly string[], problems: string[]): ReadonlyMap<string, string> {
  const known = Object.values(definitions).flatMap(({ flag }) => (flag === null ? [] : [flag]));
  const options = Object.fromEntries(known.map((flag) => [flag, { type: "string" as const }]));
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional") problems.push("serve takes no arguments besides its flags");
    else if (!known.includes(token.name)) problems.push(`there is no flag ${token.rawName}`);
    else if (!token.value) problems.push(`${token.rawName} needs a value`);
    else if (flags.has(token.name)) problems.push(`${token.rawName} is given more than once`);
    else flags.set(token.name, token.value);
  }
  return flags;
}

function readSetting<T>(
  { flag, variable, fallback, read }: Definition<T>,
  flags: ReadonlyMap<string, string>,
  environment: Environment,
  problems: string[],
): T {
  const given = flag === null ? undefined : flags.get(flag);
  const text = given ?? (environment[variable] || undefined); // an empty variable is an unset one
  if (text === undefined) return fallback();
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problems.push(`${given === undefined ? variable : `--${flag}`} must be ${error.message}`);
    return fallback();
  }
}
