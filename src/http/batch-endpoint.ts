/** Endpoint of batches. */
import type { Request, Response } from "express";
import type { Service } from "./endpoint.js";
import { sharedMemory } from "./plaintext-hygiene.js";
import { readBody } from "./request-body.js";
import { sendBytes } from "./responses.js";

export async function batch({ vault, maxBatchBytes }: Service, req: Request, res: Response): Promise<void> {
  const body = await readBody(req, res, maxBatchBytes, sharedMemory);
  sendBytes(res, 200, [await vault.batch(body)]);
}
