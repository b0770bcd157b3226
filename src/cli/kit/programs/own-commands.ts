/** Other commands of this program, as processes of their own: a value that they read is gone with them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Bytes } from "../../../../workers/protocol.js";
import { entryFile } from "../../../program-files.js";
import type { ConnectionFlags } from "../connection/server.js";
import { CommandFailure, type ExitName, exitCodes } from "../errors.js";
import type { Io } from "../io.js";

/** The file of this program, for Node. */
export { entryFile };

/** Starts commands with the connection of this one. */
export class OwnCommands {
  readonly #env: NodeJS.ProcessEnv;
  readonly #node: string;
  readonly #flags: readonly string[];

  constructor({ env, program: [node] }: Io, { home, address, tokenFile, cacert, timeout }: ConnectionFlags) {
    this.#env = env;
    this.#node = node;
    const given = { home, address, "token-file": tokenFile, cacert, timeout: timeout && `${timeout}ms` };
    this.#flags = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
  }

  /**
   * Runs a command that asks nothing; returns the bytes of its standard output, for the caller to wipe.
   * @throws CommandFailure with its message
   */
  async run(name: string, ...args: readonly string[]): Promise<Bytes> {
    const child = spawn(this.#node, this.#words(name, ["-q", ...args]), {
      stdio: ["ignore", "pipe", "pipe"],
      env: this.#env,
    });
    const closed = once(child, "close");
    const [output, problem] = await Promise.all([collect(child.stdout), collect(child.stderr)]);
    const [code] = await closed;
    if (code === 0) return output;
    output.fill(0);
    const message = Buffer.from(problem).toString("utf8").trim().replaceAll("strongroom: ", "");
    throw new CommandFailure(exitName(code as number | null), message || `strongroom ${name} failed`);
  }

  /** Runs a command that uses the terminal; returns whether it succeeded. */
  async runOnTerminal(name: string, ...args: readonly string[]): Promise<boolean> {
    const child = spawn(this.#node, this.#words(name, args), { stdio: "inherit", env: this.#env });
    const [code] = await once(child, "exit");
    return code === 0;
  }

  #words(name: string, args: readonly string[]): string[] {
    return ["--", entryFile, name, ...this.#flags, ...args];
  }
}

function exitName(code: number | null): ExitName {
  const found = Object.entries(exitCodes).find(([, each]) => each === code);
  return (found?.[0] as ExitName | undefined) ?? "unexpected";
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Bytes> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const all = new Uint8Array(new ArrayBuffer(chunks.reduce((sum, { length }) => sum + length, 0)));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
    chunk.fill(0);
  }
  return all;
}
