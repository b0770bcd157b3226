#!/usr/bin/env node
/** Owns the `strongroom` command: finds the command that was asked for, and turns failures into messages and exit codes. */
import { readFileSync } from "node:fs";
import { StartError } from "../errors.js";
import { serveHelp, usage } from "./help.js";
import { serve } from "./serve.js";

const [command, ...args] = process.argv.slice(2);

switch (command) {
  case "serve":
    if (asksForHelp(args)) process.stdout.write(serveHelp());
    else await run(() => serve(args));
    break;
  case "version":
  case "--version":
    process.stdout.write(`${version()}\n`);
    break;
  case "help":
  case "--help":
  case "-h":
    process.stdout.write(usage);
    break;
  default:
    process.stderr.write(command === undefined ? usage : `strongroom: there is no such command\n\n${usage}`);
    process.exitCode = 2;
}

function asksForHelp(flags: readonly string[]): boolean {
  return flags.includes("--help") || flags.includes("-h");
}

async function run(work: () => Promise<void>): Promise<void> {
  try {
    await work();
    process.exit(0);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`strongroom: ${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}

function version(): string {
  const manifest = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
