/**
 * `strongroom mcp`: starts the MCP server, through which coding agents use secrets that they never see.
 * The server is a package of its own, `strongroom-mcp`, found beside this program or on the path.
 * It gets the connection of this call and no token but this one's.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { RepeatableOption } from "../../cli/kit/args/args.js";
import { mustBeScope, scopePaths } from "../../cli/kit/args/paths.js";
import { type ConnectionFlags, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { runChild, startProgram } from "../../cli/kit/programs/child-process.js";
import { findProgram } from "../../cli/kit/programs/find-program.js";
import { readableEnvironment } from "../../cli/kit/programs/inherited.js";
import { entryFile } from "../../cli/kit/programs/own-commands.js";
import { withOwnTokenOnly } from "../../cli/kit/programs/without-tokens.js";

type Flags = ConnectionFlags & { readonly use?: readonly string[]; readonly allowHost?: readonly string[] };

const details = `
Coding agents start it, and talk to it on standard input and output (MCP):
  claude mcp add strongroom -- strongroom mcp --use app/
Its tools are list (paths and hosts), generate (stores a new secret), request
(sends an HTTPS request) and run (runs a program in the sandbox, and returns its
exit status and output). Credentials are added by the server's broker; no tool
returns a value. Where one is short or could be guessed, request returns only
the status, and run nothing.

It is a package of its own, made in a clone by  npm pack -w strongroom-mcp
and installed from that file:  npm i -g --prefix ~/.local ./strongroom-mcp-*.tgz`;

export function define(command: Command, io: Io): void {
  const append = (text: string, before: readonly string[] = []) => [...before, text];
  const scope = (path: string, before: readonly string[] = []) => [...before, mustBeScope(path, "--use")];
  const use = new RepeatableOption("--use <path>", "a secret, or a subtree if it ends in a slash; may be repeated");
  const allow = new RepeatableOption("--allow-host <host>", "a host to reach without a secret; may be repeated");
  command
    .description("Serves coding agents (MCP): they use secrets that they never see.")
    .addOption(use.argParser(scope))
    .addOption(allow.argParser(append))
    .addHelpText("after", details);
  withConnection(command).action((given) => mcp(io, given));
}

async function mcp(io: Io, { use = [], allowHost = [], home, address, tokenFile, cacert }: Flags): Promise<void> {
  const flags = [
    ...scopePaths(use).flatMap((path) => ["--use", path]),
    ...allowHost.flatMap((host) => ["--allow-host", host]),
  ];
  const settings = {
    STRONGROOM_HOME: home,
    STRONGROOM_ADDRESS: address,
    STRONGROOM_TOKEN_FILE: tokenFile,
    STRONGROOM_CACERT: cacert,
    STRONGROOM_COMMAND: [io.program[0], entryFile].join("\n"),
  };
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  const env = { ...withOwnTokenOnly(readableEnvironment(io), { home, tokenFile }), ...Object.fromEntries(given) };
  const program = [...findServer(io), ...flags];
  io.exitCode = await runChild(io, () => startProgram(program, env, { stdio: [...io.childStreams] }));
}

/** Finds the server next to this installation, as npm installs it, or on the path; never in the working directory. */
function findServer(io: Io): readonly string[] {
  try {
    return [io.program[0], createRequire(pathToFileURL(entryFile)).resolve("strongroom-mcp")];
  } catch {
    const found = findProgram("strongroom-mcp", io.env["PATH"]);
    if ("file" in found) return [found.file];
    const remedy = "install the file that  npm pack -w strongroom-mcp  makes in a clone (strongroom help mcp)";
    throw new CommandFailure("usage", `the MCP server is a package of its own: ${remedy}`);
  }
}
