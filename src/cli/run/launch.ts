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
import {
  closeInherited,
  type Inherited,
  inherited,
  readableEnvironment,
  withDescriptors,
} from "../kit/programs/inherited.js";
import type { Sources } from "./environment.js";

/** The request to `run-environment`, as JSON in its argument. It holds no secret. */
export type LaunchRequest = {
  readonly sources: Sources;
  readonly connection: ConnectionFlags;
  /** The descriptor to which values are also written; null without --mask. */
  readonly maskPipe: number | null;
  readonly inherited: Inherited;
  readonly quiet: boolean;
  /** Which mappings the command's core dumps hold, in hex: as before this process was hardened. */
  readonly dumpFilter: string | null;
};

type Launch = Pick<LaunchRequest, "sources" | "connection" | "quiet"> & {
  readonly mask: boolean;
  /** The command may be started again. */
  readonly isRepeated: boolean;
};

/** @throws CommandFailure usage */
export function launch(io: Io, command: readonly string[], { mask, isRepeated, ...request }: Launch): ChildProcess {
  const env = readableEnvironment(io);
  const { descriptors } = inherited;
  const maskPipe = mask ? firstFree(descriptors) : null;
  const json = JSON.stringify({
    ...request,
    maskPipe,
    inherited,
    dumpFilter: inheritedDumpFilter,
  } satisfies LaunchRequest);
  const [input, output, errors] = io.childStreams;
  const stdio = withDescriptors(mask ? [input, "pipe", "pipe"] : [input, output, errors], descriptors);
  if (maskPipe !== null) stdio[maskPipe] = "pipe";
  try {
    const args = ["--", entryFile, "run-environment", json, ...command];
    const detached = input !== "inherit"; // without our streams it does not get our terminal either
    const child = spawn(process.execPath, args, { stdio, env, detached });
    if (!isRepeated) closeInherited(descriptors);
    return child;
  } catch (error) {
    throw notStarted(error);
  }
}

/** Returns the lowest descriptor that the command does not get from the caller. */
function firstFree(descriptors: readonly number[]): number {
  let free = 3;
  while (descriptors.includes(free)) free++;
  return free;
}
