/**
 * Shamir's shares of a key: any `threshold` of them give it back, fewer tell nothing about it. A share's text is
 * `SRS-` and groups of Crockford's base32, of: threshold (1) ‖ set (3) ‖ share ‖ first 4 bytes of SHA-256 of these.
 */
import { createHash, randomBytes } from "node:crypto";
import { combine, split } from "shamir-secret-sharing";
import {
  encodeLetters,
  keyBytes,
  keyTextLength,
  letterValue,
  readKeyText,
  writeKeyText,
} from "../../../../workers/crypto/key-text.js";
import type { Bytes } from "../../../../workers/protocol.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { say } from "../output.js";
import { tries, triesLeft } from "./passphrase.js";
import { askHidden } from "./prompt.js";

const prefix = "SRS";
const groupLetters = 5;
const setBytes = 3;
const headBytes = 1 + setBytes;
const checkBytes = 4;
/** The share has a byte for each of the key's, and its number. */
const shareLetters = Math.ceil(((headBytes + keyBytes + 1 + checkBytes) * 8) / 5);
const minThreshold = 2;

type Share = {
  readonly threshold: number;
  /** The same in all shares of one key; the threshold is part of it. */
  readonly set: string;
  /** Which of the shares it is. */
  readonly number: number;
  readonly bytes: Bytes;
};

/** Takes the text of a key; returns the texts of its shares. */
export async function splitKey(key: string, shares: number, threshold: number): Promise<string[]> {
  const secret = new Uint8Array(new ArrayBuffer(keyBytes));
  readKeyText(new TextEncoder().encode(key), secret);
  const set = randomBytes(setBytes);
  const parts = await split(secret, shares, threshold).finally(() => secret.fill(0));
  return parts.map((part) => {
    const body = Buffer.concat([Uint8Array.of(threshold), set, part]);
    part.fill(0);
    return `${prefix}-${grouped(encodeLetters(Buffer.concat([body, shareCheck(body)])))}`;
  });
}

/** Returns null for a text that is no share, or mistyped. */
function readShare(text: Uint8Array): Share | null {
  const letters = Buffer.from(text).toString("latin1").replace(/[\s-]/g, "");
  if (letters.slice(0, prefix.length).toUpperCase() !== prefix) return null;
  if (letters.length !== prefix.length + shareLetters) return null;
  const bytes = decodeLetters(letters.slice(prefix.length));
  if (bytes === null) return null;
  const body = bytes.subarray(0, -checkBytes);
  if (!shareCheck(body).equals(bytes.subarray(-checkBytes))) return null;
  const threshold = body[0] ?? 0;
  const number = body.at(-1) ?? 0; // the library puts the share's coordinate last
  if (threshold < minThreshold || number === 0) return null; // correctly spelled, but made by no split
  const set = body.subarray(0, headBytes).toString("hex");
  return { threshold, set, number, bytes: new Uint8Array(body.subarray(headBytes)) };
}

/** Returns the key's text, which the caller wipes. The shares must be different ones of one set, as many as its threshold. */
async function combinedKey(shares: readonly Share[]): Promise<Bytes> {
  const key = await combine(shares.map(({ bytes }) => bytes)).finally(() => {
    for (const { bytes } of shares) bytes.fill(0);
  });
  const text = new Uint8Array(new ArrayBuffer(keyTextLength));
  writeKeyText(key, text);
  key.fill(0);
  return text;
}

function shareCheck(body: Uint8Array): Buffer {
  return createHash("sha256").update(body).digest().subarray(0, checkBytes);
}

function grouped(letters: string): string {
  return (letters.match(new RegExp(`.{1,${groupLetters}}`, "g")) ?? []).join("-");
}

function decodeLetters(letters: string): Buffer | null {
  const values = Array.from(letters, (letter) => letterValue(letter.charCodeAt(0)));
  if (values.includes(-1)) return null;
  const bits = values.map((value) => value.toString(2).padStart(5, "0")).join("");
  const bytes = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  return bits.includes("1", 8 * bytes.length) ? null : bytes; // the last letter ends in zeros
}

const maxShareBytes = 1024;

/** Returns the key's text, which the caller wipes. @throws CommandFailure usage, aborted */
export async function askKeyFromShares(io: Io, nonInteractive: boolean | undefined): Promise<Bytes> {
  const shares: Share[] = [];
  let left = tries;
  while (shares.length === 0 || shares.length !== shares[0]?.threshold) {
    const of = shares[0] === undefined ? "" : ` of ${shares[0].threshold}`;
    const asked = question(`Share ${shares.length + 1}${of}: `, left < tries);
    const share = await askShare(io, asked, nonInteractive);
    const problem = shareProblem(share, shares);
    left = problem === null ? tries : left - 1;
    if (share !== null && problem === null) shares.push(share);
    else if (left > 0) say(io, `${problem}, ${triesLeft(left)}\n`);
    else throw new CommandFailure("wrongPassphrase", `${problem}, ${tries} times: the vault is still locked`);
  }
  return combinedKey(shares);
}

async function askShare(
  io: Io,
  asked: ReturnType<typeof question>,
  nonInteractive: boolean | undefined,
): Promise<Share | null> {
  const typed = nonInteractive ? null : await askHidden(io, asked);
  if (typed === null) throw new CommandFailure("usage", "shares are typed on a terminal, and there is none");
  const share = readShare(typed);
  typed.fill(0);
  return share;
}

function question(text: string, discardsEarly: boolean) {
  const trailingInput = "a share is one line: type one at a time";
  const cancelled = "cancelled: the vault is still locked";
  return { text, limit: maxShareBytes, trailingInput, cancelled, discardsEarly };
}

function shareProblem(share: Share | null, others: readonly Share[]): string | null {
  if (share === null) return "not a valid share: check it for typing mistakes";
  if (others.some(({ set }) => set !== share.set)) return "this share belongs to another key; enter another one";
  return others.some(({ number }) => number === share.number)
    ? "this share was already entered; enter another one"
    : null;
}
