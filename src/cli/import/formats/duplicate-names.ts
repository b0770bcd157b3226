/** Detection of duplicate names in JSON objects, of which JSON.parse silently keeps the last. */

const colon = /\s*:/y;

/** Returns the first duplicate name, or null. The text must be valid JSON, in which a string before a colon is a name. */
export function repeatedName(json: string): string | null {
  const open: Set<string>[] = [];
  for (const item of namesAndBraces(json)) {
    if (item === "{") open.push(new Set());
    else if (item === "}") open.pop();
    else if (open.at(-1)?.has(item.name)) return item.name;
    else open.at(-1)?.add(item.name);
  }
  return null;
}

function* namesAndBraces(json: string): Generator<"{" | "}" | { readonly name: string }> {
  const next = /["{}]/g;
  for (let found = next.exec(json); found !== null; found = next.exec(json)) {
    const [mark] = found;
    if (mark === "{" || mark === "}") {
      yield mark;
      continue;
    }
    next.lastIndex = endOfString(json, found.index);
    const name = nameAt(json, found.index, next.lastIndex);
    if (name !== null) yield { name };
  }
}

/** Index after the closing quote. A regular expression would need a stack as deep as the string is long. */
function endOfString(json: string, begin: number): number {
  let end = json.indexOf('"', begin + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0;
  while (json[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}

function nameAt(json: string, begin: number, end: number): string | null {
  colon.lastIndex = end;
  return colon.test(json) ? (JSON.parse(json.slice(begin, end)) as string) : null;
}
