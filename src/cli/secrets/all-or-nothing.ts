/** Changes of many secrets: all or nothing up to the server's limit; above it only in steps, when the user asks for that. */
import type { Command } from "commander";
import { maxOperations } from "../../client/batch-requests.js";
import { type BatchOperation, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { failureOf } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";

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
      const { exit, message } = await failureOf(error, client);
      throw new CommandFailure(exit, `${message}; done before that: ${done} of ${operations.length} secrets`);
    }
  }
}
