/** Small programs of the system that take or give a value: it passes through a pipe, never through an argument. */

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Io } from "../io.js";
import { withoutTokens } from "./without-tokens.js";

export type CommandLine = readonly [string, ...string[]];

export function isInPath(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Writes a program's input; returns its exit status. Its output is ignored: such programs stay running and hold it open. */
export function feed(io: Io, [program, ...args]: CommandLine, input: Uint8Array): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "ignore"], env: withoutTokens(io.env) });
    child.on("error", reject).on("exit", resolve);
    child.stdin.on("error", () => {}).end(input); // a program that closes its input reports that by its exit status
  });
}

/** Returns a program's standard output. */
export async function output(io: Io, [program, ...args]: CommandLine): Promise<Buffer> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], env: withoutTokens(io.env) });
  const failed = new Promise<never>((_resolve, reject) => child.on("error", reject));
  return Promise.race([failed, collect(child.stdout)]);
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
