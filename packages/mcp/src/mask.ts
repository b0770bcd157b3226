/**
 * Masking of bytes that an upstream or a program has sent: either may repeat a credential. A value that cannot be
 * guessed is replaced by `***`. DANGER: for any other value that would answer each guess of the agent, which chooses what a
 * program prints and much of what a host repeats; so nothing is shown then, whatever the bytes are.
 */
import type { StrongroomClient } from "../../../src/client/client.js";
import type { Scope } from "./broker.js";
import { buildNeedles, findEncoded, type Range } from "./encoded.js";
import { randomParts } from "./guessable.js";

/** The values that may be repeated, as they are and as they were before the work. */
export type Mask = {
  readonly unguessable: readonly Buffer[];
  /** Paths of the others. */
  readonly guessable: readonly string[];
};

/**
 * Knows the values that the agent's requests may carry, as they are now, and those of an earlier mask.
 * @param url where the only request goes; without it, to every host
 */
export async function buildMask(client: StrongroomClient, scope: Scope, url?: URL, earlier?: Mask): Promise<Mask> {
  const { uses } = await client.listUses();
  const inScope = uses.filter(({ path }) => isWithin(scope, path));
  const paths = [...new Set(inScope.map(({ path }) => path))];
  const secrets = await client.getMany(paths);
  const values = secrets.map((secret) => Buffer.from(secret?.revealBytes() ?? []));
  const isGuessable = values.map((value) => value.length > 0 && randomParts(value.toString("utf8")).length === 0);
  const reached = url === undefined ? paths : pathsAt(inScope, scope, url);
  const guessable = paths.filter((path, i) => isGuessable[i] && reached.includes(path));
  const unguessable = values.filter((value, i) => value.length > 0 && !isGuessable[i]);
  return {
    unguessable: [...unguessable, ...(earlier?.unguessable ?? [])],
    guessable: [...new Set([...guessable, ...(earlier?.guessable ?? [])])],
  };
}

/** Returns the paths of the secrets that may go to the URL's host; all, unless it is certain that it is another host. */
function pathsAt(uses: readonly { readonly path: string; readonly host: string }[], scope: Scope, url: URL): string[] {
  const name = url.hostname.replace(/^\[|\]$|\.$/g, "").toLowerCase();
  const bound = uses.filter(({ host }) => host === name);
  const isFree = scope.allowHosts.some((host) => host.toLowerCase() === name);
  return (bound.length > 0 || isFree ? bound : uses).map(({ path }) => path);
}

export function isWithin({ paths }: Scope, path: string): boolean {
  return paths.length === 0 || paths.some((scope) => path === scope || (scope.endsWith("/") && path.startsWith(scope)));
}

/** Returns why nothing is shown; null where values are masked. */
export function withheldBecause({ guessable: [path] }: Mask): string | null {
  if (path === undefined) return null;
  const remedy = "Its owner can replace it by a generated value, or start this server for other secrets (--use).";
  return `withheld, whatever it is: the value of ${path} is short or could be guessed, so that hiding it would tell when a guess is right. ${remedy}`;
}

/**
 * Returns the bytes as text, with `***` for each value in them.
 * @param isCut whether the end was cut off, where a part of a value could stand
 */
export function masked({ unguessable }: Mask, bytes: Buffer, isCut = false): string {
  if (unguessable.length === 0) return bytes.toString("utf8");
  const parts = unguessable.flatMap((value) => randomParts(value.toString("utf8")).map((part) => Buffer.from(part)));
  const ranges = findEncoded(bytes, buildNeedles([...unguessable, ...parts]), isCut);
  if (ranges === null) return "[withheld: it is encoded in too many ways to look for a credential in it]";
  const pieces: Buffer[] = [];
  let shown = 0;
  for (const { start, end } of merged(ranges)) {
    pieces.push(bytes.subarray(shown, start), stars);
    shown = end;
  }
  return Buffer.concat([...pieces, bytes.subarray(shown)]).toString("utf8");
}

const stars = Buffer.from("***");

function merged(ranges: readonly Range[]): Range[] {
  const all: Range[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = all.at(-1);
    if (last === undefined || range.start > last.end) all.push(range);
    else all[all.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
  }
  return all;
}
