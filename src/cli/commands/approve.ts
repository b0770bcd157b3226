/** `strongroom approve`: decides about requests that wait at the broker. */
import { closeSync } from "node:fs";
import type { Command } from "commander";
import { type Approval, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { nonEmpty } from "../kit/args/args.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, clientFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { approvalText } from "../kit/output/approval-text.js";
import { type OutputFlags, printable, printJson, say, withResult } from "../kit/output.js";
import { canStart } from "../kit/programs/find-program.js";
import { readableEnvironment } from "../kit/programs/inherited.js";
import { findSessionBus, notify } from "../kit/programs/notification.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";
import { withPassphraseTries } from "../kit/prompts/passphrase.js";
import { choose, terminalColumns } from "../kit/prompts/prompt.js";

type Flags = OutputFlags & ConnectionFlags & { readonly once?: true; readonly hook?: string; readonly notify?: true };

const refreshMs = 500;

const details = `
Shows each request that waits for approval, one fact a line, and asks: y
approves this one, m all of this token, secret and host for 10 minutes, s for
its session, n refuses. Only the beginning and the end of a long path or query
are shown, with its length and SHA-256; a request's body is not shown. A
request waits for 60 seconds. Ends with Ctrl-C. With --json, only lists what
waits.

--hook runs a program for each request, at most 16 at the same time, and asks
no one: it gets the request as one JSON object on standard input. Exit code 0
approves this request; any other, or 60 seconds, refuses it. No shell reads
COMMAND: name a script for arguments. --notify shows the same facts as a
notification of the desktop; the decision stays here.`;

export function define(command: Command, io: Io): void {
  command
    .description("Watches for requests of programs that need your approval, and asks.")
    .option("--once", "decide what waits now, then exit")
    .option("--hook <command>", "let this program decide", nonEmpty)
    .option("--notify", "also show requests as notifications of the desktop")
    .addHelpText("after", details);
  withResult(withConnection(command)).action((flags) => approve(io, flags));
}

async function approve(io: Io, flags: Flags): Promise<void> {
  const { hook: program, once = false, quiet = false } = flags;
  if ([program, flags.notify, flags.json].filter((way) => way !== undefined).length > 1)
    throw new CommandFailure("usage", "--hook, --notify and --json cannot be used together");
  if (program !== undefined && !canStart(io, program)) return;
  const bus = flags.notify ? findSessionBus(io) : null;
  await withClient(io, flags, async (client) => {
    if (flags.json) return printJson(io, { ...(await client.listApprovals()) });
    if (program !== undefined) {
      const { decideByHook } = await import("./approve-hook.js");
      const environment = withoutTokens(readableEnvironment(io), flags);
      return decideByHook(io, client, { program, environment, once, quiet });
    }
    for (const path of (await client.status()).reauthorize ?? [])
      say(
        io,
        `the refresh token of ${printable(path)} is missing or not valid: get one with  strongroom use login ${shellWord(path)}\n`,
      );
    if (bus === null) return watch(io, client, once, (approval) => decide(io, client, approval));
    const notifying = watch(io, client, once, (approval) => showNotification(io, bus, approval));
    if (!hasTerminal(io)) return notifying;
    await Promise.all([notifying, watch(io, client, once, (approval) => decide(io, client, approval))]);
  });
}

/** Takes each request that waits, once. */
async function watch(
  io: Io,
  client: StrongroomClient,
  once: boolean,
  take: (approval: Approval) => Promise<void>,
): Promise<void> {
  const taken = new Set<string>();
  for (;;) {
    const { approvals } = await client.listApprovals();
    for (const approval of approvals.filter(({ id }) => !taken.has(id))) {
      await take(approval);
      taken.add(approval.id);
    }
    if (once) return;
    await io.sleep(refreshMs);
  }
}

/** Says so where the desktop shows none. */
async function showNotification(io: Io, bus: string, approval: Approval): Promise<void> {
  const facts = approvalText(approval, Number.POSITIVE_INFINITY);
  await notify(bus, io, "A request waits for approval", facts).catch((error: Error) => {
    say(io, `no notification: ${error.message}\n`);
  });
}

function hasTerminal(io: Io): boolean {
  const terminal = io.openTerminal();
  if (terminal !== null) closeSync(terminal);
  return terminal !== null;
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

/** Asks for the passphrase where the server wants it, up to three times. */
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
    await withPassphraseTries(io, {}, "Passphrase of the vault: ", (passphrase) =>
      client.decideApproval(id, { ...decision, passphrase }).catch(async (refused) => {
        const isWrong = refused instanceof StrongroomError && refused.credential === "passphrase";
        throw isWrong ? await clientFailure(refused, client) : refused;
      }),
    );
  }
}
