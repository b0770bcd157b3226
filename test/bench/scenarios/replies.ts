/** Owns what Strongroom really answers, for the bare servers to answer as many bytes. */
import { send } from "../../support/client.js";
import type { StrongroomSubject } from "../subjects.js";
import type { Workload } from "../workloads.js";

/** The body of the answer to the workload's first request. */
export async function replyTo({ server }: StrongroomSubject, { requests: [request] }: Workload): Promise<Buffer> {
  if (request?.method !== "GET") throw new RangeError("only a get can be asked for");
  const { status, text } = await send(server, { path: request.path });
  if (status !== 200) throw new Error(`${request.path} is answered ${status}: ${text}`);
  return Buffer.from(text);
}
