/** Changes of secrets: only what is still as it was seen, and many all or nothing up to the server's limit. */
import type { Command } from "commander";
import { maxOperations } from "../../../client/batch.js";
import { type BatchOperation, type StrongroomClient, StrongroomError } from "../../../client/client.js";
import { CommandFailure, clientFailure } from "../errors.js";

export type StepFlags = { readonly inSteps?: true };

export function withSteps(command: Command): Command {
  return command.option("--in-steps", `allow more than ${maxOperations} secrets, in steps of that many`);
}

/** @throws CommandFailure usage, when so many secrets cannot be changed at once */
export function mustBeAtOnce(count: number, { inSteps }: StepFlags): void {
  if (count <= maxOperations || inSteps) return;
  const problem = `these are ${count} secrets, and at most ${maxOperations} can be changed all or nothing`;
  throw new CommandFailure("usage", `${problem}: take smaller folders, or --in-steps: nothing was done`);
}

/** @throws StrongroomError when the first step fails; CommandFailure that says how much was done before, for a later one */
export async function changeAll(client: StrongroomClient, operations: readonly BatchOperation[]): Promise<void> {
  for (let done = 0; done < operations.length; done += maxOperations) {
    try {
      await client.batch(operations.slice(done, done + maxOperations));
    } catch (error) {
      if (done === 0 || !(error instanceof StrongroomError || error instanceof CommandFailure)) throw error;
      const { exit, message } = await clientFailure(error, client);
      throw new CommandFailure(exit, `${message}; done before that: ${done} of ${operations.length} secrets`);
    }
  }
}

/** @throws CommandFailure conflict */
export function refuseOverwriting(path: string, remedy: string): never {
  throw new CommandFailure("conflict", `${path} already exists: ${remedy}`);
}

/** Runs a put that must not replace a secret. @throws CommandFailure conflict, when another program has created one since */
export async function creating<T>(path: string, remedy: string, put: () => Promise<T>): Promise<T> {
  try {
    return await put();
  } catch (error) {
    if (isConflict(error)) refuseOverwriting(path, remedy);
    throw error;
  }
}

/** Whether the condition of a change did not hold. */
export function isConflict(error: unknown): error is StrongroomError & { readonly code: "PRECONDITION_FAILED" } {
  return error instanceof StrongroomError && error.code === "PRECONDITION_FAILED";
}
