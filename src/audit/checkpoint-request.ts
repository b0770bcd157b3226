/** Body of a request to check checkpoints. It carries no secret. */
import type { SignedCheckpoint } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { maxCheckpoints, signedOf } from "./audit-format.js";

const members = ["log", "time", "chain", "key", "mac"] as const;

/** @throws VaultError BAD_REQUEST */
export function readCheckpoints(body: Uint8Array): readonly SignedCheckpoint[] {
  const checkpoints = listOf(body);
  if (checkpoints === null || checkpoints.length > maxCheckpoints) throw invalid();
  return checkpoints.map(checkpointOf);
}

/** Commas and opening brackets of the longest list, with room for members that are ignored. */
const mostMarks = 16 * maxCheckpoints;

/** A MiB of brackets alone would take JSON.parse 140 ms. */
function isComplex(body: Uint8Array): boolean {
  let marks = 0;
  for (const byte of body) if (byte === comma || byte === bracket || byte === brace) marks++;
  return marks > mostMarks;
}

const [comma, bracket, brace] = Buffer.from(",[{");

/** DANGER: the parser's own error would quote the body. */
function listOf(body: Uint8Array): readonly unknown[] | null {
  if (isComplex(body)) return null;
  try {
    const parsed = JSON.parse(new TextDecoder("utf8", { fatal: true }).decode(body)) as {
      checkpoints?: unknown;
    } | null;
    return Array.isArray(parsed?.checkpoints) ? parsed.checkpoints : null;
  } catch {
    return null;
  }
}

function checkpointOf(value: unknown): SignedCheckpoint {
  if (typeof value !== "object" || value === null) throw invalid();
  const given = value as Readonly<Record<string, unknown>>;
  const [log = "", time = "", chain = "", key = "", mac = ""] = members.map((name) => textOf(given[name]));
  const seq = given["seq"];
  if (typeof seq !== "number" || !Number.isSafeInteger(seq)) throw invalid();
  return signedOf({ log, seq, time, chain, key, mac });
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid();
}

function invalid(): VaultError {
  return new VaultError(
    "BAD_REQUEST",
    `checkpoints must be a list of at most ${maxCheckpoints}, each as openapi.json shows it`,
  );
}
