/** Environment of the child of `strongroom run`: the sources of its variables and their precedence. */
import { existsSync } from "node:fs";
import type { StrongroomClient } from "../../client/client.js";
import { parseDotenv } from "../import/dotenv.js";
import { type Reference, revealReference } from "../kit/args/fields.js";
import { folderPrefix } from "../kit/args/paths.js";
import {
  cutTemplate,
  fillTemplate,
  type Part,
  pathsIn,
  referencesIn,
  shownReference,
  wholeReference,
} from "../kit/args/references.js";
import { explainEmptyFolder, fetchSecrets, listSecrets } from "../kit/connection/secrets.js";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { readInputFile, textOfInput } from "../kit/prompts/input.js";
import { readOwnFile, sha256Hex } from "./own-file.js";
import { steersPrograms } from "./steering.js";
import { type Named, type Naming, namesFor, problemOfName } from "./variables.js";

export type Sources = {
  readonly prefix: string | undefined;
  /** How the variables of `prefix` are named; by default by the last segment. */
  readonly naming: Naming | undefined;
  readonly set: readonly Named[];
  readonly envFiles: readonly EnvFile[];
};

/** `sha256`: of the content that the user has allowed, for the env file of a project. */
type EnvFile = { readonly file: string; readonly sha256?: string };

export type Environment = {
  /** Variables that differ from our own environment. */
  readonly variables: ReadonlyMap<string, string>;
  /** Values from the vault, each with the variable that holds it. */
  readonly secrets: readonly { readonly name: string; readonly value: string }[];
};

/** A variable, composed of text and secrets. `where`: its secret's path, or its place in an env file. */
type Variable = { readonly name: string; readonly parts: readonly Part[]; readonly where: string };

type GetClient = <T>(work: (client: StrongroomClient) => Promise<T>) => Promise<T>;

/** Linux, execve(2): the limit of one environment string, `NAME=value` with its final NUL. */
const maxVariableBytes = 131_072;

/** Later sources win: our own environment, the env files in their order, the prefix, `set`. @throws CommandFailure */
export async function buildEnvironment(sources: Sources, withClient: GetClient): Promise<Environment> {
  const variables = await listVariables(sources, withClient);
  const paths = variables.flatMap(({ parts }) => pathsIn(parts));
  if (paths.length === 0) return { variables: filledValues(variables, () => ""), secrets: [] }; // no server is needed
  return withClient(async (client) => {
    const secrets = await fetchSecrets(client, paths);
    const reveal = (reference: Reference) => {
      const secret = secrets.get(reference.path);
      return secret === undefined ? "" : revealReference(secret, reference);
    };
    return {
      variables: filledValues(variables, reveal),
      secrets: variables.flatMap(({ name, parts }) => referencesIn(parts).map((one) => ({ name, value: reveal(one) }))),
    };
  });
}

/** Returns the variables without their values, from lowest to highest precedence. @throws CommandFailure */
export async function listVariables(sources: Sources, withClient: GetClient): Promise<readonly Variable[]> {
  const fromFiles = (await Promise.all(sources.envFiles.map(readEnvFile))).flat();
  const { prefix, naming, set } = sources;
  const listed = prefix === undefined ? [] : await withClient((client) => namedByPrefix(client, prefix, naming, set));
  return [...fromFiles, ...[...listed, ...set].map(ofSecret)];
}

async function namedByPrefix(
  client: StrongroomClient,
  prefix: string,
  naming: Naming = "last",
  set: Sources["set"],
): Promise<Named[]> {
  const listed = (await listSecrets(client, prefix)).map(({ path }) => path);
  if (listed.length === 0) {
    throw new CommandFailure("notFound", await explainEmptyFolder(client, prefix));
  }
  const renamed = new Set(set.filter(({ field }) => field === undefined).map(({ path }) => path));
  const paths = listed.filter((path) => !renamed.has(path));
  const taken = new Set(set.map(({ name }) => name));
  const remedy = `choose the name with --set NAME=path${naming === "last" ? ", or name all by their path with --name path" : ""}`;
  return namesFor(paths, { naming, folder: folderPrefix(prefix), taken, remedy });
}

async function readEnvFile({ file, sha256 }: EnvFile): Promise<Variable[]> {
  if (/^[A-Za-z_]\w*=/.test(file) && !existsSync(file)) throw noFile(file);
  const name = `the env file ${printable(file)}`;
  const bytes = sha256 === undefined ? await readInputFile(file, name) : await readAllowed(file, sha256);
  const text = textOfInput(bytes, name);
  return parseDotenv(text, file).map(({ name, value, line }) => {
    const where = `${printable(file)}, line ${line}`;
    const problem = problemOfName(name);
    if (problem !== null) throw new CommandFailure("usage", `${where}: ${problem}`);
    const reference = wholeReference(value, where);
    const parts = reference === null ? cutTemplate(Buffer.from(value), () => where) : [reference];
    const variable = { name, parts, where };
    if (pathsIn(variable.parts).length > 0 && steersPrograms(name)) throw steering(variable);
    return variable;
  });
}

/** Returns the failure for a variable given as a file, as other programs take with -e. */
function noFile(given: string): CommandFailure {
  const name = given.slice(0, given.indexOf("="));
  const problem = "--env-file takes a file. For one variable, use";
  return new CommandFailure("usage", `${problem}  --set ${name}=path  or  --set ${name}=strongroom://path#field`);
}

/** The project file was judged by another process: its env file must still be what the user has allowed. */
async function readAllowed(file: string, sha256: string): Promise<Buffer> {
  const { bytes } = await readOwnFile(file);
  if (sha256Hex(bytes) === sha256) return bytes;
  throw new CommandFailure("usage", `${printable(file)} has just changed: read it, then  strongroom allow`);
}

function steering({ name, where }: Variable): CommandFailure {
  const remedy = `if a secret is meant to, use --set ${name}=path`;
  return new CommandFailure("usage", `${where}: ${name} changes how programs run: ${remedy}`);
}

function ofSecret({ name, path, field }: Named): Variable {
  const reference = { path, field: field ?? null };
  return { name, parts: [reference], where: shownReference(reference) };
}

type Reveal = (reference: Reference) => string;

function filledValues(variables: readonly Variable[], reveal: Reveal): Map<string, string> {
  const values = new Map<string, string>();
  for (const { name, parts, where } of variables) {
    const value = fillTemplate(parts, reveal).toString("utf8");
    refuseUnfit(name, value, where);
    values.set(name, value);
  }
  return values;
}

function refuseUnfit(name: string, value: string, where: string): void {
  const instead = "let the command read it with strongroom get, or write it to a file with strongroom inject";
  if (value.includes("\0")) {
    throw new CommandFailure(
      "usage",
      `${where}: the value for ${name} has a NUL byte, which no variable can hold: ${instead}`,
    );
  }
  const bytes = Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  if (process.platform !== "linux" || bytes <= maxVariableBytes) return;
  const most = `${name} would have ${bytes} bytes, and Linux allows ${maxVariableBytes} for a variable`;
  throw new CommandFailure("usage", `${where}: ${most}: ${instead}`);
}
