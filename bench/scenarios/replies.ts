/** Strongroom's real responses, so that the bare servers send as many bytes. */
import type { TestServer } from "../../test/support/server.js";
import { send } from "../../test/support/test-client.js";
import type { Workload } from "../workloads.js";

/** The response body of the workload's first get. */
export async function replyTo(
  { server }: { readonly server: TestServer },
  { name, requests }: Workload,
): Promise<Buffer> {
  const get = requests.find(({ method }) => method === "GET");
  if (get === undefined) throw new RangeError(`${name} gets nothing`);
  const { status, text } = await send(server, { path: get.path });
  if (status !== 200) throw new Error(`GET ${get.path} got status ${status}: ${text}`);
  return Buffer.from(text);
}
