/**
 * `strongroom agent-relay`: runs inside the sandbox of `agent run`. It checks that what is hidden is covered, and leads the
 * broker's port to the relay's socket while the program runs.
 */
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { runChild, startProgram } from "../kit/programs/child-process.js";
import { sessionFiles, startRelay } from "../run/sandbox.js";
import { checkInside } from "../run/sandbox-check.js";
import type { Expected } from "../run/sandbox-plan.js";
import { startAllowed } from "../run/sandbox-start.js";
import { withWgetrc } from "../run/trust.js";

export function define(command: Command, io: Io): void {
  command
    .description("Checks a sandbox, and leads the broker's port in it to a socket; used by agent run.")
    .argument("<directory>", "the session's directory")
    .argument("<port>", "the broker's port")
    .argument("<command...>", "the program and its arguments, after --")
    .action((directory, port, command) => relay(io, directory, port, command));
}

async function relay(io: Io, directory: string, port: string, command: readonly string[]): Promise<void> {
  checkInside(JSON.parse(readFileSync(join(directory, sessionFiles.expected), "utf8")) as Expected);
  const gate = connect(join(directory, sessionFiles.start)).on("error", () => {});
  const lines = createInterface({ input: gate });
  const orders = lines[Symbol.asyncIterator]();
  const answer = (await orders.next()).value ?? "the sandbox lost its parent";
  if (answer !== startAllowed) throw new CommandFailure("conflict", answer);
  const server = await startRelay(Number(port), () => connect(join(directory, sessionFiles.relay)));
  try {
    const env = await withWgetrc(io.env, directory, join("/tmp", `wgetrc-${randomUUID()}`));
    io.exitCode = await runChild(io, () => obeying(startProgram(command, env), orders));
  } finally {
    server.close();
    gate.destroy();
  }
}

/** The program gets the signals that strongroom gets outside, and ends with it. */
function obeying(child: ChildProcess, orders: AsyncIterator<string>): ChildProcess {
  const obey = async () => {
    for (let order = await orders.next(); order.done !== true; order = await orders.next()) {
      child.kill(order.value as NodeJS.Signals);
    }
    child.kill("SIGKILL");
  };
  void obey();
  return child;
}
