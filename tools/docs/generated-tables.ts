/**
 * The tables of the documents that follow from the code. `npm run docs` writes them between their marks; a test compares.
 *
 *   <!-- table: exit-codes -->
 *   | Exit code | Meaning |
 *   <!-- end of table -->
 */

import { readdirSync, readFileSync } from "node:fs";
import { bundledPackages } from "../../packaging/bundled-packages.js";
import { exitCodes, exitMeanings } from "../../src/cli/kit/errors.js";
import { definitions, formatDefault } from "../../src/config/definitions.js";
import { errorStatuses } from "../../src/errors.js";
import { findingCodes } from "../../src/maintenance/doctor/finding.js";
import { contract } from "../rig/contract-judge.js";
import { run } from "../rig/process.js";
import { loadedByServer } from "./loaded-packages.js";
import { longForms } from "./long-forms.js";

type Row = readonly string[];

/** Markdown by the name of the table. */
export async function renderTables(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["commands", table(["For", "Commands"], commandRows((await run(["--help"])).stdout))],
    ["exit-codes", table(["Exit code", "Meaning"], exitCodeRows())],
    ["settings", table(["Flag", "Environment", "Meaning", "Default"], settingRows())],
    ["endpoints", table(["Request", "Purpose", "Takes"], endpointRows())],
    ["errors", table(["Code", "Status", "Meaning"], errorRows())],
    ["findings", table(["Finding", "Meaning"], findingRows())],
    ["packages", table(["Loaded by", "Packages"], await packageRows())],
    ["extras", table(["Extra", "What it is"], extraRows())],
    ["long-forms", table(["Long form", "What it does", "How much"], longFormRows())],
  ]);
}

const marked = /(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)/gs;

/** The text with every marked table as it must be. @throws Error for a name that no table has */
export function withTables(text: string, tables: ReadonlyMap<string, string>): string {
  return text.replace(marked, (_whole, begin: string, name: string, end: string) => {
    const rendered = tables.get(name);
    if (rendered === undefined) throw new Error(`there is no table ${name}`);
    return `${begin}${rendered}${end}`;
  });
}

/** The names of the marked tables. */
export function tableNamesIn(text: string): string[] {
  return [...text.matchAll(marked)].map(([, , name = ""]) => name);
}

/** @throws Error without rows: what they are made from has taken another form */
function table(titles: Row, rows: readonly Row[]): string {
  if (rows.length < 3) throw new Error(`the table of ${titles.join(", ")} has lost its rows`);
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: Row) => `| ${widths.map((width, i) => (row[i] ?? "").padEnd(width)).join(" | ")} |\n`;
  return [line(titles), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("");
}

function code(text: string): string {
  return `\`${text}\``;
}

/** Rows from the headings of the files that the folders of extras are named after. */
function extraRows(): Row[] {
  return readdirSync("src/extras").map((name) => {
    const heading = readFileSync(`src/extras/${name}/${name}.ts`, "utf8");
    const [, what] = /^\/\*\*\n \* `strongroom [\w-]+`: (.+)\n/.exec(heading) ?? [];
    if (what === undefined) throw new Error(`${name} has no heading that says what it is`);
    return [`[${name}](${name}.md)`, what];
  });
}

/** Rows from the help: groups of commands, whose long lines are wrapped and indented. */
function commandRows(help: string): Row[] {
  const groups = help
    .replace(/\n {10,}/g, " ")
    .matchAll(/^(\w[\w ]*):\n((?: {2}(?!strongroom)[a-z][a-z-]*(?:\|[a-z]+)?\b.*\n)+)/gm);
  return [...groups].map(([, group = "", lines = ""]) => {
    const names = [...lines.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = ""]) => code(name));
    return [group, names.join(" ")];
  });
}

function exitCodeRows(): Row[] {
  return Object.entries(exitMeanings).map(([name, meaning]) => [
    String(exitCodes[name as keyof typeof exitCodes]),
    meaning,
  ]);
}

function settingRows(): Row[] {
  return Object.values(definitions).map((definition) => {
    const { flag, variable, meaning } = definition;
    return [flag === null ? "" : code(`--${flag}`), code(variable), meaning, formatDefault(definition)];
  });
}

/** The descriptions of the responses are made of sentences that begin with a code: "`INTERNAL`: a failure inside." */
function errorRows(): Row[] {
  const texts = Object.values(components.responses).map(({ description }) => description);
  const found = texts.flatMap((text) => [...text.matchAll(/`([A-Z_]+)`: (.*?)\.(?= `[A-Z_]+`: |$)/g)]);
  const meanings = new Map(found.map(([, name = "", meaning = ""]) => [name, meaning]));
  return Object.entries(errorStatuses).map(([name, status]) => [code(name), String(status), meanings.get(name) ?? ""]);
}

function findingRows(): Row[] {
  return Object.entries(findingCodes).map(([name, meaning]) => [code(name), meaning]);
}

async function packageRows(): Promise<Row[]> {
  const { main, keyWorker } = await loadedByServer();
  const names = bundledPackages().map(({ name }) => name);
  const row = (title: string, isIn: (name: string) => boolean) => [title, names.filter(isIn).map(code).join(" ")];
  return [
    row("key worker", (name) => keyWorker.includes(name)),
    row("server", (name) => main.includes(name)),
    row("some commands", (name) => !main.includes(name) && !keyWorker.includes(name)),
  ];
}

function longFormRows(): Row[] {
  return Object.entries(longForms).map(([name, { meaning, numbers = {} }]) => {
    const settings = Object.entries(numbers).map(([variable, number]) => code(`${variable}=${number}`));
    return [code(name), meaning, settings.join(", ")];
  });
}

type Fields = { readonly properties?: object; readonly required?: readonly string[] };
type Reference = { readonly $ref: string };
type Content = Readonly<Record<string, { readonly schema: Reference | Fields }>>;

type Parameter = { readonly name: string; readonly in: string };

type Operation = {
  readonly summary: string;
  readonly parameters?: readonly (Reference | Parameter)[];
  readonly requestBody?: { readonly content: Content };
};

const { paths, components } = contract as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Fields>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
};

function endpointRows(): Row[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => endpointRow(method, path, operation)),
  );
}

function endpointRow(method: string, path: string, { summary, parameters = [], requestBody }: Operation): Row {
  const asked = parameters
    .map((parameter) => ("$ref" in parameter ? components.parameters[schemaName(parameter)] : parameter))
    .filter((found) => found?.in !== "path");
  return [
    code(`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/, ":$1")}`),
    summary,
    [...fieldsIn(requestBody?.content), ...asked.map((found) => code(`${found?.name}?`))].join(", "),
  ];
}

function schemaName({ $ref }: Reference): string {
  return $ref.split("/").at(-1) ?? "";
}

/** The fields of a named schema. */
function fieldsIn(content: Content = {}): string[] {
  const schema = content["application/json"]?.schema;
  return schema !== undefined && "$ref" in schema ? fieldNames(components.schemas[schemaName(schema)]) : [];
}

function fieldNames({ properties = {}, required = [] }: Fields = {}): string[] {
  return Object.keys(properties).map((name) => code(required.includes(name) ? name : `${name}?`));
}
