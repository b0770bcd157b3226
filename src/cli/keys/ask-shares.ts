/** Prompt for shares of a key, one after the other, until there are enough. */
import type { Bytes } from "../../../workers/protocol.js";
import { askHidden } from "../prompt/terminal.js";
import { CommandFailure } from "../session/exit-codes.js";
import { keyOf, readShare, type Share } from "./shares.js";

const maxShareBytes = 1024;

/** Returns the key's text, which the caller wipes. @throws CommandFailure usage, aborted */
export async function askKeyFromShares(nonInteractive: boolean | undefined): Promise<Bytes> {
  const shares: Share[] = [];
  while (shares.length === 0 || shares.length !== shares[0]?.threshold) {
    const of = shares[0] === undefined ? "" : ` of ${shares[0].threshold}`;
    const share = await askShare(`Share ${shares.length + 1}${of}: `, nonInteractive);
    const problem = problemOf(share, shares);
    if (share !== null && problem === null) shares.push(share);
    else process.stderr.write(`${problem}\n`);
  }
  return keyOf(shares);
}

async function askShare(text: string, nonInteractive: boolean | undefined): Promise<Share | null> {
  const typed = nonInteractive ? null : await askHidden(question(text));
  if (typed === null) throw new CommandFailure("usage", "shares are typed on a terminal, but there is none to ask on");
  const share = readShare(typed);
  typed.fill(0);
  return share;
}

function question(text: string) {
  const spilled = "a share is one line: type one after the other";
  return { text, limit: maxShareBytes, spilled, cancelled: "cancelled: the vault is still locked" };
}

function problemOf(share: Share | null, others: readonly Share[]): string | null {
  if (share === null) return "this is no share, or it is mistyped: compare it with the paper";
  if (others.some(({ set }) => set !== share.set)) return "this share belongs to another key: type another";
  return others.some(({ number }) => number === share.number) ? "this share was typed already: type another" : null;
}
