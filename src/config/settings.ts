/** Reading of the settings: flag, then environment, then settings file, then default. One error lists all problems. */
import { join } from "node:path";
import { StartError } from "../errors.js";
import { type Definition, definitions, type Settings } from "./definitions.js";
import { Problem } from "./readers.js";

type Environment = Readonly<Record<string, string | undefined>>;

export type GivenFlags = { readonly [K in keyof Settings]?: string };

/** Members of the home's settings file, as the texts of their flags. `path`: the file's, for messages. */
type FileSettings = { readonly path: string; readonly texts: GivenFlags };

export type SettingsFile = FileSettings & {
  /** Empty without a file. */
  readonly text: string;
  /** Names of all members, as they are in the file. */
  readonly members: readonly string[];
  /** Problems of the file and its members; values are judged with the other settings. */
  readonly problems: readonly string[];
};

export function settingsFilePath(home: string): string {
  return join(home, "config.toml");
}

export function emptySettingsFile(home: string): SettingsFile {
  return { path: settingsFilePath(home), text: "", texts: {}, members: [], problems: [] };
}

const noFile: FileSettings = { path: "", texts: {} };

/** Where a setting's value comes from, the first of these that has it. */
const settingSources = ["flag", "variable", "file", "default"] as const;
type SettingSource = (typeof settingSources)[number];

/** An empty variable is an unset one. */
export function sourceOfSetting(
  name: keyof Settings,
  flags: GivenFlags,
  environment: Environment,
  { texts }: FileSettings = noFile,
): SettingSource {
  if (flags[name] !== undefined) return "flag";
  if (environment[definitions[name].variable]) return "variable";
  return texts[name] === undefined ? "default" : "file";
}

/** `problems`: what the caller found wrong already. @throws StartError, exit code 2, that lists every problem. */
export function readSettings(
  flags: GivenFlags,
  environment: Environment,
  problems: string[] = [],
  file: FileSettings = noFile,
): Settings {
  const read = <K extends keyof Settings>(name: K): Settings[K] =>
    readSetting(name, flags[name], environment, problems, file);
  const rank = (name: keyof Settings) => settingSources.indexOf(sourceOfSetting(name, flags, environment, file));
  const idleTimeout = rank("idleTimeoutMs") < rank("idleTimeout") ? null : read("idleTimeout");
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
    problems.push(
      "--tls-cert and --tls-key (STRONGROOM_TLS_CERT, STRONGROOM_TLS_KEY) need each other: set both or neither",
    );
  }
  if (problems.length === 0) return settings;
  const list = problems.map((problem) => `  - ${problem}\n`).join("");
  throw new StartError(`invalid settings:\n${list}strongroom serve --help lists all settings`, 2);
}

/** Settings under the names of their flags, for records and comparisons; without home and token. */
type NamedSettings = Readonly<Record<string, unknown>>;

/** Both settings of the idle timeout are one here. */
export function namedSettings(settings: Settings): NamedSettings {
  const names = (Object.keys(definitions) as (keyof Settings)[]).filter((name) => !unnamed.has(name));
  const { idleTimeoutMs, brokerSocket } = settings;
  const brokerPort = brokerSocket !== null && settings.brokerPort === 0 ? null : settings.brokerPort; // of the socket alone
  const own = Object.fromEntries(names.map((name) => [settingName(name), settings[name]]));
  return { ...own, "broker-port": brokerPort, "idle-timeout": idleTimeoutMs };
}

const unnamed: ReadonlySet<keyof Settings> = new Set(["home", "token", "idleTimeoutMs"]);

/** Returns a setting's name among `NamedSettings`; that of the variable for what has no flag. */
function settingName(name: keyof Settings): string {
  const { flag, variable } = definitions[name === "idleTimeoutMs" ? "idleTimeout" : name];
  return flag ?? variable;
}

/** Returns the texts of those settings of a start that come from flags or variables, by their names. */
export function givenSettingTexts(flags: GivenFlags, environment: Environment): Readonly<Record<string, string>> {
  const names = (Object.keys(definitions) as (keyof Settings)[]).filter((name) => name !== "home" && name !== "token");
  // the second of the two idle timeouts wins in the object, as it does among the settings of one rank
  const rows = names
    .toReversed()
    .map((name) => [settingName(name), flags[name] ?? environment[definitions[name].variable]]);
  return Object.fromEntries(rows.filter(([, text]) => text));
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
  file: FileSettings = noFile,
): Settings[K] {
  const problems: string[] = [];
  const value = readSetting(name, given, environment, problems, file);
  if (problems.length > 0) throw new StartError(problems.join("; "), 2);
  return value;
}

function readSetting<K extends keyof Settings>(
  name: K,
  given: string | undefined,
  environment: Environment,
  problems: string[],
  { path, texts }: FileSettings,
): Settings[K] {
  const { flag, variable, fallback, read }: Definition<Settings[K]> = definitions[name];
  if (given === "") problems.push(`--${flag} needs a value`);
  const own = given || environment[variable];
  const text = own || texts[name];
  if (text === undefined) return fallback(environment);
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const where = given ? `--${flag}` : own ? variable : `${flag} in ${path}`;
    problems.push(`${where} must be ${error.message}`);
    return fallback(environment);
  }
}
