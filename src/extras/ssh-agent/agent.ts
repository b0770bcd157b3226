/**
 * An ssh-agent (draft-ietf-sshm-ssh-agent) whose keys it does not have: it lists public keys, and passes what is to be signed
 * on. It adds, removes and locks nothing.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { printable } from "../../cli/kit/output.js";
import { MalformedMessage, string, uint32, WireReader } from "../../cli/kit/ssh/ssh-wire.js";

const failure = 5;
const requestIdentities = 11;
const identitiesAnswer = 12;
const signRequest = 13;
const signResponse = 14;

/** Limit of OpenSSH's agent, in bytes. */
const longestMessage = 256 * 1024;

/** `blob`: the public key in SSH's form. */
export type AgentKey = { readonly name: string; readonly blob: Buffer };

/** Keys that the agent offers; either method may fail, which the client sees as a refusal without a reason. */
export interface AgentKeys {
  list(): Promise<readonly AgentKey[]>;
  /** Returns the signature in SSH's form, or null for a key that it does not know or a way that it does not sign in. */
  sign(blob: Buffer, data: Buffer, flags: number): Promise<Buffer | null>;
  /** Called with the reason of each refusal. */
  failed(error: unknown): void;
}

/** Serves the protocol on each connection of a server, which the caller makes listen. */
export function agentServer(keys: AgentKeys): Server {
  return createServer((socket) => {
    socket.on("error", () => socket.destroy());
    void serve(socket, keys);
  });
}

/** One request at a time for each connection; a client that does not read gets no further response. */
async function serve(socket: Socket, keys: AgentKeys): Promise<void> {
  let held: Buffer = Buffer.alloc(0);
  const closing = new AbortController();
  socket.once("close", () => closing.abort());
  try {
    for await (const chunk of socket) {
      held = Buffer.concat([held, chunk as Buffer]);
      for (let length = messageLength(held); length !== null; length = messageLength(held)) {
        const response = await responseTo(held.subarray(4, 4 + length), keys);
        if (!socket.write(string(response))) await once(socket, "drain", { signal: closing.signal });
        held = held.subarray(4 + length);
      }
    }
    socket.end();
  } catch {
    socket.destroy();
  }
}

/** The length of the first message; null when it has not arrived as a whole. @throws MalformedMessage */
function messageLength(held: Buffer): number | null {
  if (held.length < 4) return null;
  const length = held.readUInt32BE();
  if (length === 0 || length > longestMessage) throw new MalformedMessage();
  return held.length >= 4 + length ? length : null;
}

async function responseTo(message: Buffer, keys: AgentKeys): Promise<Buffer> {
  const reader = new WireReader(message);
  try {
    const type = reader.byte();
    if (type === requestIdentities) return identities(await keys.list());
    const signature = type === signRequest ? await keys.sign(reader.bytes(), reader.bytes(), reader.uint32()) : null;
    return signature === null ? Buffer.of(failure) : Buffer.concat([Buffer.of(signResponse), string(signature)]);
  } catch (error) {
    keys.failed(error);
    return Buffer.of(failure);
  }
}

function identities(keys: readonly AgentKey[]): Buffer {
  const entries = keys.flatMap(({ name, blob }) => [string(blob), string(printable(name))]);
  return Buffer.concat([Buffer.of(identitiesAnswer), uint32(keys.length), ...entries]);
}
