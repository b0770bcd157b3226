/** Reading of the settings: flag, then environment, then default. One error lists all problems. */
import { StartError } from "../errors.js";
import { type Definition, definitions, type Settings } from "./definitions.js";
import { Problem } from "./readers.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** The texts of the flags that were given. */
export type GivenFlags = { readonly [K in keyof Settings]?: string };

/** `problems`: what the caller found wrong already. @throws StartError, exit code 2, that lists every problem. */
export function readSettings(flags: GivenFlags, environment: Environment, problems: string[] = []): Settings {
  const read = <K extends keyof Settings>(name: K): Settings[K] =>
    readSetting(name, flags[name], environment, problems);
  const onlyInMs = flags.idleTimeoutMs !== undefined && flags.idleTimeout === undefined; // a flag wins over a variable
  const idleTimeout = onlyInMs ? null : read("idleTimeout");
  const brokerSocket = read("brokerSocket");
  return withoutProblems(problems, {
    home: read("home"),
    store: read("store"),
    storePasswordFile: read("storePasswordFile"),
    storeConnections: read("storeConnections"),
    host: read("host"),
    port: read("port"),
    serverNames: read("serverNames"),
    socket: read("socket"),
    idleTimeout,
    idleTimeoutMs: idleTimeout ?? read("idleTimeoutMs"),
    token: read("token"),
    tokenFile: read("tokenFile"),
    tlsCert: read("tlsCert"),
    tlsKey: read("tlsKey"),
    scryptLogN: read("scryptLogN"),
    maxValueBytes: read("maxValueBytes"),
    maxBatchBytes: read("maxBatchBytes"),
    keepVersions: read("keepVersions"),
    keepTrashDays: read("keepTrashDays"),
    keepVersionBytes: read("keepVersionBytes"),
    cacheBytes: read("cacheBytes"),
    maxConnections: read("maxConnections"),
    audit: read("audit"),
    auditOnFailure: read("auditOnFailure"),
    reviewPage: read("reviewPage"),
    logLevel: read("logLevel"),
    vaultPort: read("vaultPort"),
    brokerPort: read("brokerPort") ?? (brokerSocket === null ? null : 0),
    brokerSocket,
    upstreamCa: read("upstreamCa"),
    approveWith: read("approveWith"),
  });
}

/** @throws StartError */
function withoutProblems(problems: string[], settings: Settings): Settings {
  if ((settings.tlsCert === null) !== (settings.tlsKey === null)) {
    problems.push("STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY need each other: set both or neither");
  }
  if (problems.length === 0) return settings;
  const list = problems.map((problem) => `  - ${problem}\n`).join("");
  throw new StartError(`invalid settings:\n${list}strongroom serve --help lists all settings`, 2);
}

/** Variables that are no settings of the server, but known to the command or the client. */
const otherVariables = ["STRONGROOM_ADDRESS", "STRONGROOM_AUTOSTART"];

/** Returns the names of variables that look like settings and are none: most likely mistyped. */
export function unknownVariables(environment: Environment): readonly string[] {
  const known = new Set([...Object.values(definitions).map(({ variable }) => variable), ...otherVariables]);
  return Object.keys(environment).filter((name) => name.startsWith("STRONGROOM_") && !known.has(name));
}

/** Reads one setting, for a command that needs no other; `given` is its flag. @throws StartError, exit code 2 */
export function readOneSetting<K extends keyof Settings>(
  name: K,
  given: string | undefined,
  environment: Environment,
): Settings[K] {
  const problems: string[] = [];
  const value = readSetting(name, given, environment, problems);
  if (problems.length > 0) throw new StartError(problems.join("; "), 2);
  return value;
}

function readSetting<K extends keyof Settings>(
  name: K,
  given: string | undefined,
  environment: Environment,
  problems: string[],
): Settings[K] {
  const { flag, variable, fallback, read }: Definition<Settings[K]> = definitions[name];
  if (given === "") problems.push(`--${flag} needs a value`);
  const text = given || environment[variable] || undefined; // an empty variable is an unset one
  if (text === undefined) return fallback(environment);
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problems.push(`${given ? `--${flag}` : variable} must be ${error.message}`);
    return fallback(environment);
  }
}
