/** Owns what Strongroom really answers, for the bare servers to answer as many bytes. */
import { send } from "../../support/client.js";
import type { Request } from "../programs/load.js";
import type { StrongroomSubject } from "../subjects.js";

/** The body of the answer to the first of the requests. */
export async function replyTo({ server }: StrongroomSubject, [request]: readonly Request[]): Promise<Buffer> {
  if (request === undefined) throw new RangeError("there is no request to ask for");
  const { method, path } = request;
  const { status, text } = await send(server, { method, path });
  if (status !== 200) throw new Error(`${method} ${path} is answered ${status}: ${text}`);
  return Buffer.from(text);
}
