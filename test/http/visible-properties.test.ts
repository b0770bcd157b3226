/**
 * What a client token sees of secrets in all responses, by its scopes: the value and the metadata only of what it may read,
 * and never anything of a secret outside of its paths.
 */
import { expect } from "chai";
import { shareTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustCreateToken,
  mustInit,
  mustPut,
  mustSucceed,
  type Send,
  send,
} from "../../tools/rig/test-client.js";

/** Texts of a secret that a response may show; each is nowhere else. */
const canaries = {
  value: "canary-of-the-value",
  earlierValue: "canary-of-an-earlier-value",
  description: "canary-of-the-description",
  earlierDescription: "canary-of-an-earlier-description",
  host: "canary.of.a.binding.example.com",
  outside: "canary-of-a-path-outside",
} as const;
type Canary = keyof typeof canaries;

const described: readonly Canary[] = ["description", "earlierDescription"];
const readable: readonly Canary[] = ["value", "earlierValue", ...described];

/** The oracle: what docs/http-api.md lets a token with these scopes see. */
const mayShow: Readonly<Record<string, readonly Canary[]>> = {
  list: described,
  get: readable,
  put: [],
  delete: [],
  use: [],
  "put delete": [],
  "put get": readable,
};

const given = { value: "new" };

/** Every request on one secret, at `path`, by name; each is sent to a secret of its own. */
const requests: Readonly<Record<string, (path: string) => Send>> = {
  list: () => ({ path: "/v1/secrets" }),
  "list of all prefixes": () => ({ path: "/v1/secrets?prefix=outside" }),
  "list behind": () => ({ path: "/v1/secrets?after=outside" }),
  get: (path) => ({ path: `/v1/secrets/${path}` }),
  "get outside": () => ({ path: `/v1/secrets/outside/${canaries.outside}` }),
  put: (path) => ({ method: "PUT", path: `/v1/secrets/${path}`, body: given }),
  "put of what is there": (path) => ({ method: "PUT", path: `/v1/secrets/${path}`, body: { value: canaries.value } }),
  "put on a wrong tag": (path) => {
    return { method: "PUT", path: `/v1/secrets/${path}`, body: given, headers: { "if-match": '"AAAAAAAAAAAAAAAA"' } };
  },
  "put of nothing valid": (path) => ({ method: "PUT", path: `/v1/secrets/${path}`, body: { value: 1 } }),
  delete: (path) => ({ method: "DELETE", path: `/v1/secrets/${path}` }),
  metadata: (path) => ({ method: "PATCH", path: `/v1/metadata/${path}`, body: { type: "other" } }),
  "metadata, unchanged": (path) => ({ method: "PATCH", path: `/v1/metadata/${path}`, body: {} }),
  versions: (path) => ({ path: `/v1/versions/${path}` }),
  "one version": (path) => ({ path: `/v1/versions/${path}?version=1` }),
  undo: (path) => ({ method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } }),
  prune: (path) => ({ method: "DELETE", path: `/v1/versions/${path}` }),
  destroy: (path) => ({ method: "DELETE", path: `/v1/versions/${path}?version=1` }),
  trash: (path) => ({ method: "POST", path: `/v1/trash/${path}`, body: "" }),
  "list of the trash": () => ({ path: "/v1/trash" }),
  untrash: (path) => ({ method: "POST", path: `/v1/untrash/${path}`, body: "" }),
  "destruction in the trash": (path) => ({ method: "DELETE", path: `/v1/trash/${path}` }),
  "get in a batch": (path) => batch({ get: path }, { get: `outside/${canaries.outside}` }),
  "put in a batch": (path) => batch({ put: path, ...given }),
  "delete in a batch": (path) => batch({ delete: path }),
  "move in a batch": (path) => batch({ move: path, to: `${path}-moved` }),
  "move over itself in a batch": (path) => batch({ move: path, to: path }),
  "copy in a batch": (path) => batch({ copy: path, to: `${path}-copied` }),
  uses: (path) => ({ path: `/v1/uses/${path}` }),
  "list of uses": () => ({ path: "/v1/uses" }),
  "one-time code": (path) => ({ method: "POST", path: `/v1/otp/${path}`, body: "" }),
  self: () => ({ path: "/v1/tokens/self" }),
  tokens: () => ({ path: "/v1/tokens" }),
  audit: () => ({ path: "/v1/audit" }),
};

function batch(...operations: readonly object[]): Send {
  return { method: "POST", path: "/v1/batch", body: { operations } };
}

async function prepare(server: TestServer, path: string, isTrashed: boolean): Promise<void> {
  await mustPut(server, path, { value: canaries.earlierValue, description: canaries.earlierDescription });
  await mustPut(server, path, { value: canaries.value, description: canaries.description });
  const use = { host: canaries.host, header: "authorization", format: "Bearer {}" };
  mustSucceed(await send(server, { method: "PUT", path: `/v1/uses/${path}`, body: use }));
  if (isTrashed) mustSucceed(await send(server, { method: "POST", path: `/v1/trash/${path}`, body: "" }));
}

describe("what a client token sees of secrets", () => {
  const server = shareTestServer({}, async (shared) => {
    await mustInit(shared);
    await prepare(shared, `outside/${canaries.outside}`, false);
  });

  it("is the value and the metadata for the root token, so that the canaries are there to be seen", async () => {
    await prepare(server(), "all/a", false);
    const seen = new Set<Canary>();
    for (const path of ["/v1/secrets", "/v1/secrets/all/a", "/v1/versions/all/a?version=1", "/v1/uses/all/a"])
      for (const canary of seenIn(await send(server(), { path }))) seen.add(canary);
    expect([...seen].sort()).to.deep.equal(Object.keys(canaries).sort());
  });

  for (const [scopes, shown] of Object.entries(mayShow)) {
    it(`with ${scopes}, in every response: ${shown.length === 0 ? "nothing" : shown.join(", ")}`, async () => {
      const top = scopes.replaceAll(" ", "-");
      const { token } = await mustCreateToken(server(), { name: top, can: scopes.split(" "), paths: [`${top}/`] });
      const found: string[] = [];
      for (const [name, request] of Object.entries(requests)) {
        const path = `${top}/${name.replaceAll(/[ ,]+/g, "-")}`;
        await prepare(server(), path, /trash/.test(name) && name !== "trash");
        const seen = seenIn(await send(server(), { ...request(path), token }));
        found.push(...seen.filter((canary) => !shown.includes(canary)).map((canary) => `${name} shows ${canary}`));
      }
      expect(found).to.deep.equal([]);
    });
  }
});

function seenIn({ text, headers }: ApiResponse): Canary[] {
  const whole = `${text} ${JSON.stringify(headers)}`;
  return (Object.keys(canaries) as Canary[]).filter((name) => whole.includes(canaries[name]));
}
