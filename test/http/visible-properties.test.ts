/**
 * Properties of secrets that a client token sees in all responses, by its scopes: the value and the metadata only of what it may read,
 * and never anything of a secret outside of its paths.
 */
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { endsServer, requestName } from "../support/request-judges.js";
import { ask, prepare, type Rig, rootRotation, startRig, type Verdict } from "../support/request-rig.js";
import { type ApiRequest, allRequests, forms, isTokenless, rowAt, there } from "../support/requests.js";

/** Texts of a secret that a response may show; each is nowhere else. */
const canaries = {
  value: "canary-of-the-value",
  earlierValue: "canary-of-an-earlier-value",
  description: "canary-of-the-description",
  earlierDescription: "canary-of-an-earlier-description",
  type: '"type":"certificate"',
  expiry: "2087-06-05T04:03:02.000Z",
  host: "canary.of.a.binding.example.com",
  outside: "canary-of-a-path-outside",
} as const;
type Canary = keyof typeof canaries;

const described: readonly Canary[] = ["description", "earlierDescription", "type", "expiry"];
const readable: readonly Canary[] = ["value", "earlierValue", ...described];

/** The oracle: what docs/reference/http-api.md lets a token with these scopes see. */
const mayShow: Readonly<Record<string, readonly Canary[]>> = {
  list: described,
  get: readable,
  put: [],
  delete: [],
  use: [],
  "put delete": [],
  "put get": readable,
};

const outside = `outside/${canaries.outside}`;

/** Puts the canaries back where a request may show them. `sent`: the request that may have taken them away. */
async function restore({ server }: Rig, sent?: ApiRequest): Promise<void> {
  if (sent === undefined || /lock|seal|keys|token/.test(sent.at)) await prepare(server, sent);
  if (sent === undefined || sent.subject === there.secret) {
    await putCanaries(server, there.secret);
    const use = { host: canaries.host, header: "authorization", format: "Bearer {}" };
    mustSucceed(await send(server, { method: "PUT", path: `/v1/uses/${there.secret}`, body: use }));
  }
  if (sent === undefined || sent.subject === there.trashed) {
    await send(server, { method: "DELETE", path: `/v1/trash/${there.trashed}` });
    await putCanaries(server, there.trashed);
    mustSucceed(await send(server, { method: "POST", path: `/v1/trash/${there.trashed}` }));
  }
}

async function putCanaries(server: TestServer, path: string): Promise<void> {
  await send(server, { method: "DELETE", path: `/v1/secrets/${path}` });
  const metadata = { type: "certificate", expiresAt: canaries.expiry };
  await mustPut(server, path, { ...metadata, value: canaries.earlierValue, description: canaries.earlierDescription });
  await mustPut(server, path, { ...metadata, value: canaries.value, description: canaries.description });
}

/** With scope `use`: the places to which the broker sends. */
const tellsHosts = ({ at }: ApiRequest) => at === "GET /v1/broker";

/** Every request, and those of what is outside of the token's paths. */
const requests = [...allRequests, ...forms].filter(
  (row) => !endsServer(row) && !isTokenless(row) && row.at !== rootRotation,
);
const outsideRequests = requests
  .filter(({ isPath, method }) => isPath && method === "GET")
  .map((row) => ({ ...row, subject: outside }));
const undo = rowAt("POST /v1/versions/:path");
const metadata = rowAt("PATCH /v1/metadata/:path");
const getOutside = { ...rowAt("POST /v1/batch"), body: { operations: [{ get: there.secret }, { get: outside }] } };

describe("visible properties of secrets", () => {
  const rig = shared(async () => {
    const started = await startRig();
    await restore(started);
    await putCanaries(started.server, outside);
    return started;
  });

  /** Sends every request with a token. Returns the canaries that each of the responses shows. */
  async function seenBy(token: string): Promise<readonly (readonly [ApiRequest, readonly Canary[]])[]> {
    const seen: [ApiRequest, readonly Canary[]][] = [];
    for (const sample of [...requests, getOutside, ...outsideRequests]) {
      const verdict = await ask(rig(), sample, { token });
      seen.push([sample, seenIn(verdict)]);
      if (verdict.status < 400 && !/^(?:GET|LIST)/.test(sample.method)) await restore(rig(), sample);
    }
    return seen;
  }

  it("the root token sees everything of a secret, so that the canaries can be seen, also after an undo", async () => {
    const ofRoot = [...requests.filter(({ method, may }) => method === "GET" && may !== "open"), undo, metadata];
    const seen = new Map<string, readonly Canary[]>();
    for (const sample of ofRoot) seen.set(requestName(sample), seenIn(await ask(rig(), sample)));
    await restore(rig());
    expect([...new Set([...seen.values()].flat())]).to.have.members(Object.keys(canaries));
    for (const sample of [undo, metadata])
      expect(seen.get(requestName(sample)), requestName(sample)).not.to.deep.equal([]);
  });

  for (const [scopes, shown] of Object.entries(mayShow)) {
    it(`a token with ${scopes} sees in all responses ${shown.length === 0 ? "nothing" : shown.join(", ")}`, async () => {
      const name = `sees-${scopes.replaceAll(" ", "-")}`;
      const { token } = await mustCreateToken(rig().server, { name, can: scopes.split(" "), paths: ["app/"] });
      const found = (await seenBy(token)).flatMap(([sample, seen]) =>
        seen
          .filter((canary) => !shown.includes(canary) && !(canary === "host" && tellsHosts(sample)))
          .map((canary) => `${requestName(sample)} shows ${canary}`),
      );
      expect(found).to.deep.equal([]);
    });
  }
});

function seenIn({ text, head }: Verdict): Canary[] {
  const whole = `${text} ${head}`;
  return (Object.keys(canaries) as Canary[]).filter((name) => whole.includes(canaries[name]));
}
