/**
 * Start of the command of `strongroom run`. The process that waits for it never holds a value or the token: it starts a
 * second strongroom (`run-environment`), which fetches the secrets and turns into the command. No shell has a part in it:
 * a shell evaluates what is assigned to some names, whatever the quotes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { inheritedDumpFilter } from "../../hardening.js";
import { entryFile } from "../../program-files.js";
import type { ConnectionFlags } from "../kit/connection/server.js";
import type { Io } from "../kit/io.js";
import { notStarted } from "../kit/programs/child-process.js";
import type { Sources } from "./environment.js";

/** What `run-environment` is asked for, as JSON in its argument. It holds no secret. */
export type LaunchRequest = {
  readonly sources: Sources;
  readonly connection: ConnectionFlags;
  /** Values are also written to `maskPipe`. */
  readonly mask: boolean;
  readonly quiet: boolean;
  /** Which mappings the command's core dumps hold, in hex: as before this process was hardened. */
  readonly dumpFilter: string | null;
};

/** @throws CommandFailure usage */
export function launch(
  { env }: Io,
  command: readonly string[],
  request: Omit<LaunchRequest, "dumpFilter">,
): ChildProcess {
  const json = JSON.stringify({ ...request, dumpFilter: inheritedDumpFilter } satisfies LaunchRequest);
  const output = request.mask ? "pipe" : "inherit";
  const stdio = ["inherit", output, output, ...(request.mask ? ["pipe" as const] : [])] as const;
  try {
    const args = ["--", entryFile, "run-environment", json, ...command];
    return spawn(process.execPath, args, { stdio: [...stdio], env });
  } catch (error) {
    throw notStarted(error);
  }
}
