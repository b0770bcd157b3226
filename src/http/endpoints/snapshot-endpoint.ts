/** `POST /v1/snapshot`: the files that a backup copies. */
import type { Request, Response } from "express";
import { VaultError } from "../../errors.js";
import type { Service } from "../endpoint.js";
import { contextOf } from "../request-context.js";
import { parseQuery } from "../request-target.js";
import { sendJson } from "../responses.js";

const copied = "the snapshot contains only ciphertext: copy it, then remove it";
const frozen =
  "the disk takes no snapshot, so this is the vault itself, which refuses writes until the reader has ended: copy it, and " +
  "change nothing in it";

export async function snapshot({ vault }: Service, req: Request, res: Response): Promise<void> {
  const { directory, count, direct } = await vault.snapshot(readerOf(req));
  const taken = { ok: true, message: direct ? frozen : copied, directory, secretCount: count };
  sendJson(res, 200, direct ? { ...taken, direct } : taken);
}

const readerPattern = /^(?<pid>[1-9][0-9]{0,9}):(?<started>[ -~]{0,100})$/;

/** Returns the process that a frozen vault waits for; null unless it is named. @throws VaultError BAD_REQUEST */
function readerOf(req: Request): { readonly pid: number; readonly started: string } | null {
  const text = parseQuery(contextOf(req).target.query, ["reader"]).get("reader");
  if (text === undefined) return null;
  const { pid, started } = readerPattern.exec(text)?.groups ?? {};
  if (pid === undefined || started === undefined)
    throw new VaultError("BAD_REQUEST", "the parameter reader is invalid: give PID:START, as in openapi.json");
  return { pid: Number(pid), started };
}
