/** Vaults with many secrets, filled in batches over HTTPS, so that another commit's server can fill its own. */
import { join } from "node:path";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../tools/rig/clean-up.js";
import { mustInit, mustSucceed, send } from "../tools/rig/test-client.js";
import { type StartOptions, startStrongroom } from "./subjects.js";

const perDirectory = 100;
const perBatch = 1000;
const value = "v".repeat(200);

/** The path of the n-th secret of a filled vault; a directory holds a hundred. */
export function numberedPath(n: number): string {
  const directory = String(Math.floor(n / perDirectory)).padStart(5, "0");
  return `team-${directory}/secret-${String(n % perDirectory).padStart(2, "0")}`;
}

/** Makes a home with a vault of `count` secrets of 200 bytes and no server; removed at the end. */
export async function filledHome(count: number, options: StartOptions = {}): Promise<string> {
  const home = join(temporaryDirectory(), "home");
  const mark = cleanUpMark();
  const { server } = await startStrongroom(home, options);
  await mustInit(server);
  for (let first = 0; first < count; first += perBatch) {
    const operations = Array.from({ length: Math.min(perBatch, count - first) }, (_, i) => {
      return { put: numberedPath(first + i), value, type: "api-key" };
    });
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
  }
  await server.stop();
  await cleanUpTo(mark);
  return home;
}
