/** A request that waits for approval as a person sees it: one fact a line, none of which can scroll others away or imitate them. */
import { createHash } from "node:crypto";
import displayWidth from "fast-string-width";
import type { Approval } from "../../../client/client.js";
import { localTime, printable } from "../output.js";

/** Widest value that is shown whole, in columns, and what is kept of the beginning and the end of a longer one. */
const [widest, firstColumns, lastColumns] = [240, 120, 60];

const labelColumns = 11;
const fewestColumns = 20;

/** @param columns of the terminal */
export function approvalText(approval: Approval, columns: number): string {
  const { host, port, scheme, method, target, query, path, token, program, since } = approval;
  const facts: readonly (readonly [label: string, value: string])[] = [
    ["host", shown(host)],
    ["port", String(port)],
    ["scheme", shown(scheme)],
    ["method", shown(method)],
    ["path", shown(target)],
    ["query", typeof query === "string" ? shown(query) : `${query.length} bytes, SHA-256 ${shown(query.sha256)}`],
    ["secret", shown(path)],
    ["token", shown(token)],
    ["program", program === null ? "unknown" : `pid ${program.pid}, ${shown(program.name)}`],
    ["since", localTime(new Date(since))],
  ];
  const width = Math.max(fewestColumns, columns - labelColumns);
  return facts.map(([label, value]) => `  ${label.padEnd(labelColumns - 2)}${folded(value, width)}`).join("\n");
}

/** Escapes a value, and replaces the middle of a long one by its length and hash. */
function shown(value: string): string {
  const text = printable(value);
  if (text === "") return "(not given)"; // with a space, which no target has
  if (displayWidth(text) <= widest) return text;
  const characters = [...text];
  const first = characters.slice(0, fitting(characters, firstColumns)).join("");
  const last = characters.slice(-fitting(characters.toReversed(), lastColumns)).join("");
  const hash = createHash("sha256").update(value).digest("hex");
  return `${first} ... ${Buffer.byteLength(value)} bytes in all, SHA-256 ${hash} ... ${last}`;
}

/** Returns how many of the first characters fit into so many columns, at least one. */
function fitting(characters: readonly string[], columns: number): number {
  let [count, width] = [0, 0];
  for (const character of characters) {
    width += displayWidth(character);
    if (width > columns && count > 0) break;
    count++;
  }
  return count;
}

/** Breaks a value into lines below its first one, so that a terminal does not begin one of them under the labels. */
function folded(value: string, width: number): string {
  const lines: string[] = [];
  for (let left = [...value]; left.length > 0; ) {
    const count = fitting(left, width);
    lines.push(left.slice(0, count).join(""));
    left = left.slice(count);
  }
  return lines.join(`\n${" ".repeat(labelColumns)}`);
}
