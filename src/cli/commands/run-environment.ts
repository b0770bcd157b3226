/**
 * Hidden command that `strongroom run` starts: fetches the secrets, prints the shell commands that set the variables, and
 * ends. Its standard output is read by the shell that becomes the command.
 */
import { writeSync } from "node:fs";
import type { Command } from "commander";
import { printable } from "../lib/output.js";
import { withClient } from "../lib/server.js";
import { buildEnvironment, type Environment } from "../run/environment.js";
import { type LaunchRequest, maskPipe, problemOfProgram } from "../run/launch.js";
import { frame, minMaskedBytes } from "../run/output-mask.js";
import { exportLine } from "../run/variables.js";

export function define(command: Command): void {
  command.argument("<request>").argument("<program>").action(prepare);
}

async function prepare(json: string, program: string): Promise<void> {
  const { sources, connection, mask, quiet, unset } = JSON.parse(json) as LaunchRequest;
  const flags = quiet ? { ...connection, quiet } : connection;
  const environment = await buildEnvironment(sources, (work) => withClient(flags, work));
  const { variables } = environment;
  const missing = problemOfProgram(program, variables.get("PATH") ?? process.env["PATH"]);
  if (missing !== null) {
    process.stderr.write(`strongroom: ${printable(missing.problem)}\n`);
    process.exitCode = missing.status;
    return;
  }
  if (mask && !quiet) process.stderr.write(warningOfShort(environment));
  if (mask) for (const { value } of environment.secrets) writeAll(maskPipe, frame(value));
  const close = mask ? `exec ${maskPipe}>&-\n` : "";
  const gone = ["STRONGROOM_TOKEN", ...unset].filter((name) => !variables.has(name));
  process.stdout.write(`${close}unset ${gone.join(" ")}\n${exportLine(variables)}`);
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
}

function warningOfShort({ secrets }: Environment): string {
  const short = secrets.filter(({ value }) => value !== "" && Buffer.byteLength(value) < minMaskedBytes);
  if (short.length === 0) return "";
  const names = short.map(({ name }) => name).join(", ");
  return `strongroom: not masked, because shorter than ${minMaskedBytes} bytes: ${names}\n`;
}
