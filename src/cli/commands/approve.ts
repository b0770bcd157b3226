/** `strongroom approve`: decides about requests that wait at the broker. */
import type { Command } from "commander";
import { type Approval, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { approvalText } from "../kit/output/approval-text.js";
import { type OutputFlags, printJson, say, withResult } from "../kit/output.js";
import { askPassphrase } from "../kit/prompts/passphrase.js";
import { choose, terminalColumns } from "../kit/prompts/prompt.js";

type Flags = OutputFlags & ConnectionFlags & { readonly once?: true };

const refreshMs = 500;

const details = `
Shows each request that waits for approval, one fact a line, and asks: y
approves this one, m all of this token, secret and host for 10 minutes, s for
its session, n refuses. Only the beginning and the end of a long path or query
are shown, with its length and SHA-256; a request's body is not shown. A
request waits for 60 seconds. Ends with Ctrl-C. With --json, only lists what
waits.`;

export function define(command: Command, io: Io): void {
  command
    .description("Watches for requests of programs that need your approval, and asks.")
    .option("--once", "decide what waits now, then exit")
    .addHelpText("after", details);
  withResult(withConnection(command)).action((flags) => approve(io, flags));
}

async function approve(io: Io, flags: Flags): Promise<void> {
  await withClient(io, flags, async (client) => {
    if (flags.json) return printJson(io, { ...(await client.listApprovals()) });
    const decided = new Set<string>();
    await decideAll(io, client, decided);
    while (!flags.once) {
      await io.sleep(refreshMs);
      await decideAll(io, client, decided);
    }
  });
}

async function decideAll(io: Io, client: StrongroomClient, decided: Set<string>): Promise<void> {
  const { approvals } = await client.listApprovals();
  for (const approval of approvals.filter(({ id }) => !decided.has(id))) {
    await decide(io, client, approval);
    decided.add(approval.id);
  }
}

const durations: Readonly<Record<string, string | number>> = { y: "request", m: 600, s: "session" };

const choice = `approve? [y]es, this one; all of this token, secret and host: 10 [m]inutes, [s]ession; [n]o: `;

async function decide(io: Io, client: StrongroomClient, approval: Approval): Promise<void> {
  const { id } = approval;
  const question = `A request waits for approval:\n${approvalText(approval, terminalColumns(io))}\n${choice}`;
  const key = await choose(io, question, ["y", "m", "s", "n"]);
  if (key === null)
    throw new CommandFailure("usage", "approve asks on a terminal, and there is none: use --json to list");
  try {
    await send(io, client, id, { approve: key !== "n", for: durations[key] ?? "request" });
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    say(io, "the request no longer waits\n");
  }
}

/** Asks for the passphrase where the server wants it. */
async function send(
  io: Io,
  client: StrongroomClient,
  id: string,
  decision: { readonly approve: boolean; readonly for: string | number },
): Promise<void> {
  try {
    await client.decideApproval(id, decision);
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "BAD_REQUEST") throw error;
    const passphrase = await askPassphrase(io, "Passphrase of the vault: ");
    if (passphrase === null) throw error;
    try {
      await client.decideApproval(id, { ...decision, passphrase });
    } finally {
      passphrase.fill(0);
    }
  }
}
