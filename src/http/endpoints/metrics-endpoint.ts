/** `GET /v1/metrics`, in Prometheus' text format. */
import type { Request, Response } from "express";
import type { Service } from "../endpoint.js";
import { sendText } from "../responses.js";

/** Version 0.0.4 of the text format. */
const contentType = "text/plain; version=0.0.4; charset=utf-8";

export async function metrics({ scrape }: Service, _req: Request, res: Response): Promise<void> {
  sendText(res, contentType, await scrape());
}
