/**
 * Stanzas as age and its plugins exchange them (C2SP's specification of age plugins):
 *
 *   -> command argument …
 *   the body in base64 without padding, in lines of 64 characters, and at last a shorter one, which may be empty
 */
export type Stanza = { readonly args: readonly string[]; readonly body: Buffer };

/** The other side does not speak the protocol. */
export class MalformedStanza extends Error {}

const columns = 64;
/** Limits of a line and of a body in base64, in bytes: more than a header of age has. */
const longestLine = 16 * 1024;
const longestBody = 1024 * 1024;

/** Reads stanzas until the input ends. @throws MalformedStanza */
export async function* readStanzas(input: AsyncIterable<Uint8Array>): AsyncGenerator<Stanza, void> {
  let open: { readonly args: readonly string[]; text: string } | null = null;
  for await (const line of linesIn(input)) {
    if (open === null) {
      open = { args: parseArguments(line), text: "" };
      continue;
    }
    open.text += line;
    if (line.length > columns || open.text.length > longestBody) throw new MalformedStanza();
    if (line.length === columns) continue;
    const body = fromBase64(open.text);
    if (body === null) throw new MalformedStanza();
    yield { args: open.args, body };
    open = null;
  }
  if (open !== null) throw new MalformedStanza();
}

export function stanzaText(args: readonly string[], body: Uint8Array): string {
  const text = toBase64(body);
  const lines = Array.from({ length: Math.floor(text.length / columns) + 1 }, (_, i) =>
    text.slice(i * columns, (i + 1) * columns),
  );
  return `-> ${args.join(" ")}\n${lines.join("\n")}\n`;
}

/** Encodes without padding. */
export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}

/** Decodes the one spelling that `toBase64` gives; null for any other text. */
export function fromBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64");
  return toBase64(bytes) === text ? bytes : null;
}

function parseArguments(line: string): readonly string[] {
  const [arrow, ...args] = line.split(" ");
  if (arrow !== "->" || args.length === 0 || !args.every((arg) => /^[!-~]+$/.test(arg))) throw new MalformedStanza();
  return args;
}

async function* linesIn(input: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let held = "";
  for await (const chunk of input) {
    const [first = "", ...rest] = Buffer.from(chunk).toString("latin1").split("\n");
    held += first;
    for (const line of rest) {
      yield held;
      held = line;
    }
    if (held.length > longestLine) throw new MalformedStanza();
  }
  if (held !== "") throw new MalformedStanza();
}
