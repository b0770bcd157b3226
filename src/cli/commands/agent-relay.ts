/** `strongroom agent-relay`: runs inside the sandbox of `agent run`, where it leads the broker's port to the relay's socket. */
import { connect } from "node:net";
import type { Command } from "commander";
import { runChild } from "../run/child-process.js";
import { startProgram, startRelay } from "../run/sandbox.js";

export function define(command: Command): void {
  command
    .description("Leads the broker's port inside a sandbox to a socket; used by agent run.")
    .argument("<socket>", "the socket that leads out of the sandbox")
    .argument("<port>", "the broker's port")
    .argument("<command...>", "the program and its arguments, after --")
    .action(relay);
}

async function relay(socket: string, port: string, command: readonly string[]): Promise<void> {
  const server = await startRelay(Number(port), () => connect(socket));
  try {
    process.exitCode = await runChild(() => startProgram(command, process.env));
  } finally {
    server.close();
  }
}
