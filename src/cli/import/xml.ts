/**
 * Reader of the plain XML that programs export: elements, text, CDATA, comments and the five entities of XML. A DOCTYPE, which
 * could define others, is refused.
 */
import { CommandFailure } from "../kit/errors.js";

/** An element: its texts joined, its children in order, and its attributes as they are written. */
export type Element = {
  readonly name: string;
  readonly attributes: string;
  text: string;
  readonly children: Element[];
};

const name = "[\\p{L}_:][\\p{L}\\p{N}_:.-]*";
const attributes = `(?:\\s+${name}\\s*=\\s*(?:"[^"<]*"|'[^'<]*'))*`;

/** A comment or instruction, a CDATA section, a tag, or text. */
const token = new RegExp(
  `<!--[^]*?-->|<\\?[^]*?\\?>|<!\\[CDATA\\[(?<cdata>[^]*?)\\]\\]>|` +
    `<(?<end>/?)(?<name>${name})(?<attributes>${attributes})\\s*(?<empty>/?)>|(?<text>[^<]+)`,
  "uy",
);

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** Deeper than any export; a chain of elements must not exhaust the stack of those who read the tree. */
const maxDepth = 200;

/** Returns the document's element. @throws CommandFailure usage; no message quotes the document */
export function parseXml(text: string, file: string): Element {
  const document: Element = { name: "", attributes: "", text: "", children: [] };
  const open = [document];
  const begin = text.startsWith("\uFEFF") ? 1 : 0;
  for (let at = begin; at < text.length; at = token.lastIndex) {
    token.lastIndex = at;
    const found = token.exec(text)?.groups;
    const problem = found === undefined ? unreadable(text, at) : take(found, open);
    if (problem === null) continue;
    const line = text.slice(0, at).split("\n").length;
    throw new CommandFailure("usage", `${file} is not valid XML (line ${line}): ${problem}`);
  }
  const [root] = document.children;
  if (open.length === 1 && root !== undefined && document.children.length === 1) return root;
  throw new CommandFailure("usage", `${file} is not valid XML: it is cut off, or has no element`);
}

function unreadable(text: string, at: number): string {
  return text.startsWith("<!DOCTYPE", at) ? "an export has no DOCTYPE" : "export it again";
}

type Token = { readonly [group: string]: string | undefined };

/** Puts a token into the innermost open element; returns what is wrong with it, or null. */
function take({ cdata, text, end, name, attributes = "", empty }: Token, open: Element[]): string | null {
  const innermost = open.at(-1);
  if (innermost === undefined) return "an element ends that is not open";
  if (cdata !== undefined || text !== undefined) return addText(innermost, cdata ?? decoded(text ?? ""));
  if (end === "/") return innermost.name === name && open.pop() ? null : "an element ends that is not open";
  if (name === undefined) return null; // a comment or an instruction
  const element: Element = { name, attributes, text: "", children: [] };
  innermost.children.push(element);
  return empty === "/" || open.push(element) <= maxDepth ? null : "its elements are too deep";
}

function addText(element: Element, text: string | null): string | null {
  if (text === null) return "it has an unknown entity";
  element.text += text;
  return null;
}

/** Returns null for an entity that XML does not define. */
function decoded(text: string): string | null {
  let isKnown = true;
  const result = text.replace(/&([^;&\s]{0,10});?/g, (_whole, entity: string) => {
    const character = entities[entity] ?? numbered(entity);
    isKnown &&= character !== null;
    return character ?? "";
  });
  return isKnown ? result : null;
}

/** `#233` and `#xe9`. */
function numbered(entity: string): string | null {
  const [, hex, decimal] = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(entity) ?? [];
  const code = hex !== undefined ? Number.parseInt(hex, 16) : Number(decimal ?? "NaN");
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : null;
}
