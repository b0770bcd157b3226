/**
 * `age-plugin-strongroom`: what age starts for identities of this plugin. It speaks `identity-v1` on standard input and
 * output, and has X25519 stanzas unwrapped by the server.
 */
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { type StrongroomClient, StrongroomError } from "../../client/client.js";
import { identityName } from "./identity.js";
import { fromBase64, MalformedStanza, readStanzas, type Stanza, stanzaText, toBase64 } from "./stanzas.js";

type Flags = ConnectionFlags & { readonly agePlugin?: string };

/** `index`: the file's number, as age gave it. */
type SealedFile = { readonly index: string; readonly stanzas: { readonly share: Buffer; readonly wrapped: Buffer }[] };

type Asked = { readonly identities: readonly string[]; readonly files: readonly SealedFile[] };

/** Why an identity cannot be used; `index`: its number. */
type Problem = { readonly index: number; readonly message: string };

const stanzaPartBytes = 32;
/** Limit of the API. */
const mostInputs = 1000;
/** How often a locked vault is asked about. */
const mostQuestions = 3;

export function define(command: Command, io: Io): void {
  command
    .description("Speaks age's plugin protocol: age runs it, as age-plugin-strongroom.")
    .option("--age-plugin <protocol>", "the protocol that age speaks");
  withConnection(command).action((flags) => agePlugin(io, flags));
}

async function agePlugin(io: Io, flags: Flags): Promise<void> {
  if (flags.agePlugin === undefined)
    throw new CommandFailure("usage", "age runs this program: strongroom age --help shows how");
  if (flags.agePlugin !== "identity-v1")
    throw new CommandFailure(
      "usage",
      "this plugin decrypts only: encrypt with -r and what  strongroom age recipient NAME  prints",
    );
  const peer = new Peer(io);
  try {
    const asked = await readAsked(peer);
    if (asked !== null) await answer(io, flags, peer, asked);
  } catch (error) {
    if (!(error instanceof MalformedStanza)) throw error;
    throw new CommandFailure("usage", "the input is not age's plugin protocol");
  } finally {
    await peer.end();
  }
}

/** age: sends stanzas, and in the second phase a response to each of ours. */
class Peer {
  readonly #io: Io;
  readonly #stanzas: AsyncGenerator<Stanza, void>;

  constructor(io: Io) {
    this.#io = io;
    this.#stanzas = readStanzas(io.stdin);
  }

  async next(): Promise<Stanza | null> {
    return (await this.#stanzas.next()).value ?? null;
  }

  send(args: readonly string[], body: Uint8Array | string = ""): void {
    this.#io.stdout.write(stanzaText(args, Buffer.from(body)));
  }

  /** Sends a stanza and returns the arguments of the response. */
  async ask(args: readonly string[], body: Uint8Array | string = ""): Promise<readonly string[]> {
    this.send(args, body);
    return (await this.next())?.args ?? ["fail"];
  }

  async end(): Promise<void> {
    await this.#stanzas.return();
  }
}

/** Reads the first phase; null where age ends before it has said all. Unknown commands are ignored, as the protocol wants. */
async function readAsked(peer: Peer): Promise<Asked | null> {
  const identities: string[] = [];
  const files = new Map<string, SealedFile>();
  for (let stanza = await peer.next(); stanza !== null; stanza = await peer.next()) {
    const [command, first = "", type, encoded = "", ...more] = stanza.args;
    if (command === "done") return { identities, files: [...files.values()] };
    if (command === "add-identity") identities.push(first);
    if (command !== "recipient-stanza") continue;
    const file = files.get(first) ?? { index: first, stanzas: [] };
    files.set(first, file);
    const share = fromBase64(encoded);
    const isOurs = type === "X25519" && more.length === 0 && stanza.body.length === stanzaPartBytes;
    if (isOurs && share?.length === stanzaPartBytes) file.stanzas.push({ share, wrapped: stanza.body });
  }
  return null;
}

/** Speaks the second phase. While the vault is locked, it asks whether to try again. */
async function answer(io: Io, flags: Flags, peer: Peer, asked: Asked): Promise<void> {
  const closed = new Set(asked.files);
  const unwrap = (client: StrongroomClient) => unwrapAll(client, peer, asked.identities, closed);
  for (let questions = 0; ; questions++) {
    const failure = await withClient(io, { ...flags, nonInteractive: true }, unwrap).then(
      () => null,
      (error: unknown) => error,
    );
    if (failure === null) break;
    if (!(failure instanceof CommandFailure)) throw failure;
    if (failure.exit === "locked" && questions < mostQuestions && (await isUnlockedNow(peer))) continue;
    await peer.ask(["error", "internal"], failure.message);
    break;
  }
  peer.send(["done"]);
}

/** age asks where it can; else it says so, and nothing waits. */
async function isUnlockedNow(peer: Peer): Promise<boolean> {
  const buttons = ["The vault is unlocked", "Cancel"].map((text) => toBase64(Buffer.from(text)));
  const question = "The vault is locked: unlock it with  strongroom unlock  and continue.";
  const [response, button] = await peer.ask(["confirm", ...buttons], question);
  return response === "ok" && button === "yes";
}

/** Takes files that open out of `closed`, and reports problems of identities where some do not. */
async function unwrapAll(
  client: StrongroomClient,
  peer: Peer,
  identities: readonly string[],
  closed: Set<SealedFile>,
): Promise<void> {
  const problems: Problem[] = [];
  for (const [index, identity] of identities.entries()) {
    const name = identityName(identity);
    const keys = name === null ? [] : await keysNamed(client, name);
    if (name === null) problems.push({ index, message: "the identity is damaged: print it again" });
    for (const key of keys) {
      const refusal = await unwrapWith(client, peer, key, closed).then(() => null, refusalOrThrow);
      if (refusal !== null) problems.push({ index, message: printable(refusal.message) });
    }
  }
  if (closed.size === 0) return;
  for (const { index, message } of problems) await peer.ask(["error", "identity", String(index)], message);
}

/** Returns an error that is about one key alone. */
function refusalOrThrow(error: unknown): StrongroomError {
  const aboutOneKey = ["NOT_FOUND", "FORBIDDEN", "BAD_REQUEST"]; // the last: where the name is not valid
  if (error instanceof StrongroomError && aboutOneKey.includes(error.code)) return error;
  throw error;
}

/** Returns the one name, or without one all x25519 keys that the token may see. */
async function keysNamed(client: StrongroomClient, name: string): Promise<readonly string[]> {
  if (name !== "") return [name];
  const { keys } = await client.listTransitKeys();
  return keys.flatMap((key) => (key.type === "x25519" ? [key.name] : []));
}

/** Tries a key with all stanzas of files that are closed. */
async function unwrapWith(client: StrongroomClient, peer: Peer, name: string, closed: Set<SealedFile>): Promise<void> {
  const inputs = [...closed].flatMap((file) => file.stanzas.map((stanza) => ({ file, stanza })));
  for (let at = 0; at < inputs.length; at += mostInputs) {
    const part = inputs.slice(at, at + mostInputs);
    const results = await client.transitBatch(
      "unwrap",
      name,
      part.map(({ stanza }) => stanza),
    );
    for (const [i, { file }] of part.entries()) {
      const fileKey = results[i]?.fileKey;
      if (fileKey === undefined || !closed.delete(file)) continue;
      await peer.ask(["file-key", file.index], Buffer.from(fileKey, "base64"));
    }
  }
}
