/** Values, plaintexts and keys in the server's memory after every request of the table. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { mustInit, mustLock, mustStatus } from "../../tools/rig/test-client.js";
import { endsServer, requestName } from "../support/request-judges.js";
import { ask, canary, prepare, type Rig } from "../support/request-rig.js";
import { type ApiRequest, allRequests, forms, message } from "../support/requests.js";
import { ShiftedClock } from "../support/shifted-clock.js";
import { type Look, startWithCanary } from "./search.js";

/** One for each port: every pattern makes the search longer. */
const values = { native: randomBytes(36).toString("base64url"), vault: randomBytes(36).toString("base64url") };

/** Sends every request of both ports, with a value or plaintext that nothing else has. */
export async function* everyRequest(): AsyncGenerator<Look, void> {
  const settings = {
    STRONGROOM_VAULT_PORT: "0",
    STRONGROOM_BROKER_PORT: "0",
    STRONGROOM_REVIEW_PAGE: "on",
  };
  const server = await startWithCanary(settings);
  await mustInit(server);
  const vaultPort = Number((await mustStatus(server))["vaultPort"]);
  const rig: Rig = { server: { ...server, vaultPort }, clock: new ShiftedClock(), tokens: new Map() };
  const gone: Record<string, string> = { "the prepared value": canary };
  await prepare(rig.server);
  for (const sample of [...allRequests, ...forms].filter((one) => !endsServer(one)))
    Object.assign(gone, await sendWithValue(rig, sample));
  yield { when: "while unlocked", server, gone, settles: true };
  await mustLock(rig.server);
  yield { when: "after a lock", server, gone };
}

/** Returns what to search for: what was sent, and a key that the response carries. */
async function sendWithValue(rig: Rig, sample: ApiRequest): Promise<Readonly<Record<string, string>>> {
  const value = values[sample.port];
  const text = JSON.stringify(sample.body);
  const body = text
    .replace('"third"', `"${value}"`)
    .replace(`"${message}"`, `"${Buffer.from(value).toString("base64")}"`);
  const { text: carried, status } = await ask(rig, { ...sample, body: JSON.parse(body) as object | null });
  if (sample.carries === "value" && !forms.includes(sample)) expect(carried, requestName(sample)).to.contain(canary);
  if (!/^(?:GET|LIST)/.test(sample.method) && status < 400) await prepare(rig.server, sample);
  const key = sample.carries === "token" ? /SRK-[0-9A-Z-]{20,}/.exec(carried)?.[0] : undefined;
  return {
    ...(body !== text && { [`the value sent to the ${sample.port} port`]: value }),
    ...(key !== undefined && { [`the key of ${requestName(sample)}`]: key }),
  };
}
