/** Reading of the settings: flag, then environment, then default. One error lists all problems. */
import { parseArgs } from "node:util";
import { StartError } from "../errors.js";
import { type Definition, definitions, type Settings } from "./definitions.js";
import { Problem } from "./readers.js";

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

/** Reads one setting, for a command that needs no other; `given` is its flag. @throws StartError, exit code 2 */
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
    if (token.kind === "positional") problems.push("serve takes flags only, no arguments");
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
  const text = given ?? (environment[variable] || undefined); // an empty variable counts as unset
  if (text === undefined) return fallback();
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problems.push(`${given === undefined ? variable : `--${flag}`} must be ${error.message}`);
    return fallback();
  }
}
