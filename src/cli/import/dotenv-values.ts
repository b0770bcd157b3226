/**
 * Values of a dotenv file as they are stored. Readers of dotenv differ in what they fill in between double quotes and without
 * quotes: what can mean only one thing is filled in, and the rest is kept as it is written, or refused; each is named.
 *
 *   ${NAME}, $NAME      filled in where the file sets NAME before; else ${…} is refused, and $NAME is kept
 *   \" \' \$            the character, where its quotes make that the only use; other backslashes are kept
 *   op://…              a reference of another program is refused
 */
import { type Assignment, parseDotenv } from "./dotenv.js";
import { type ImportEntry, joinSources, type ParsedSource } from "./entry.js";

/** `isForRun`: only `run -e` reads the values afterwards, which fills in nothing. @throws CommandFailure usage */
export function readDotenv(text: string, file: string, isForRun: boolean): ParsedSource {
  const values = new Map<string, string>();
  return joinSources(
    parseDotenv(text, file).map((assignment) => {
      const { name, line, value } = assignment;
      const origin = `line ${line}`;
      if (isReference(value)) return { leftOut: [`${origin} (${name}): it is a reference to the vault`] };
      const result = isForRun ? asRunReads(assignment) : storedValue(assignment, values);
      if ("problem" in result) return { refused: [{ origin: `${origin} (${name})`, problem: result.problem }] };
      values.set(name, result.value);
      const found: ImportEntry[] = [{ path: name, value: result.value, origin }];
      return { found, remarks: result.remarks.map((remark) => `${origin} (${name}): ${remark}`) };
    }),
  );
}

/** Whether the value comes from the vault already, or a part of it does. */
export function isReference(value: string): boolean {
  return value.includes("strongroom://");
}

type Result = { readonly value: string; readonly remarks: readonly string[] } | { readonly problem: string };

function asRunReads({ value, quote }: Assignment): Result {
  const isPlain = quote === "'" || quote === "`" || !/\$\{?[A-Za-z_]/.test(value);
  return { value, remarks: isPlain ? [] : ["its $ is kept as it is written"] };
}

function storedValue({ value, quote }: Assignment, values: ReadonlyMap<string, string>): Result {
  if (/^(?:op|keeper|bws|akv|ref\+\w+):\/\//.test(value))
    return { problem: "it is a reference of another program: put its value there" };
  if (quote === "`") return { value, remarks: [] };
  if (quote === "'") return withoutEscapes(value);
  return withVariables(value, quote, values);
}

/** Within single quotes all is literal, but for such a quote. */
function withoutEscapes(value: string): Result {
  const stored = value.replaceAll("\\'", "'");
  return { value: stored, remarks: stored === value ? [] : ["the backslash before ' is left out"] };
}

const variable = /\\[\s\S]|\$\{([^}]*)\}|\$([A-Za-z_]\w*)/g;

function withVariables(value: string, quote: string, values: ReadonlyMap<string, string>): Result {
  const remarks = new Set<string>();
  let problem: string | null = null;
  const stored = value.replace(variable, (whole, braced?: string, bare?: string) => {
    const name = braced ?? bare;
    if (name === undefined) return escaped(whole, quote, remarks);
    const found = values.get(name);
    if (found === undefined && braced !== undefined) problem ??= unset(braced);
    remarks.add(found === undefined ? "its $ is kept as it is written" : `${whole} is filled in`);
    return found ?? whole;
  });
  return problem === null ? { value: stored, remarks: [...remarks] } : { problem };
}

/** DANGER: what is not the name of a variable may be a part of a password. */
function unset(name: string): string {
  const shown = /^[A-Z][A-Z\d_]*$/.test(name) ? name : "…";
  return `its \${${shown}} is not set before: put the value there, or single quotes around it to keep it as it is`;
}

/** Readers agree on a backslash without quotes, which stays, and on one before what would end the quotes or be filled in. */
function escaped(whole: string, quote: string, remarks: Set<string>): string {
  const character = whole.slice(1);
  const isEscape = character === "$" || character === quote;
  if (isEscape) remarks.add(`the backslash before ${character} is left out`);
  else if (quote !== "") remarks.add("its backslash is kept as it is written");
  return isEscape ? character : whole;
}
