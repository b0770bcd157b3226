/** Metadata and values that the key worker remembers after they have opened: never seen at another place, and not after its key has ended. */
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { startTestServer, uncached } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut, mustStatus, mustUnlock, send } from "../../tools/rig/test-client.js";
import { mustRotate } from "../support/key-requests.js";

describe("remembered metadata", () => {
  it("remembered metadata and values are never those of another path, another space or an earlier key", async () => {
    const server = await startTestServer(uncached);
    await mustInit(server);
    for (const path of ["a", "b"]) await mustPut(server, path, { value: path, description: `of ${path}` });
    const file = (name: string, space = "secrets") => join(server.home, "vault", "gen-1", space, `${name}.sealed`);
    const described = async (path: string) => {
      const { status, json } = await send(server, { path: `/v1/secrets/${path}` });
      return status === 200 ? (json["metadata"] as { readonly description: string }).description : status;
    };
    const both = async () => [await described("a"), await described("b")];
    for (let i = 0; i < 3; i++) expect(await both()).to.deep.equal(["of a", "of b"]); // a value is remembered the second time
    copyFileSync(file("a"), file("old"));
    const swap = () => {
      renameSync(file("a"), file("x"));
      renameSync(file("b"), file("a"));
      renameSync(file("x"), file("b"));
    };
    swap();
    expect(await both()).to.deep.equal([500, 500]);
    swap();
    expect(await both()).to.deep.equal(["of a", "of b"]);
    await send(server, { method: "POST", path: "/v1/transit/keys/a" });
    copyFileSync(file("a"), file("a", "keys"));
    expect((await send(server, { path: "/v1/transit/keys/a" })).status).to.equal(500);
    await mustRotate(server);
    while ((await mustStatus(server))["rotation"] !== undefined) expect(await both()).to.deep.equal(["of a", "of b"]);
    renameSync(file("old"), file("a"));
    expect(await both()).to.deep.equal([500, "of b"]);
    await mustLock(server);
    expect(await both()).to.deep.equal([403, 403]);
    await mustUnlock(server);
    expect(await both()).to.deep.equal([500, "of b"]);
  });
});
