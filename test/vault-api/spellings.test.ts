/** Spellings of a path on the port for Vault's clients: none leads a token outside of its paths, or a response to another's secret. */
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import { mustCreateToken, mustPut } from "../../tools/rig/test-client.js";
import { startVaultServer, vault } from "../../tools/rig/vault-client.js";

const canary = "canary-of-the-other-folder";

/** Paths that name, or nearly name, the secret `out/key` for a token of `in/`. */
const spellings = [
  "secret/data/out/key",
  "out/data/key",
  "in/data/../../out/data/key",
  "in/data/..%2f..%2fout%2fdata%2fkey",
  "in/data/%2e%2e/%2e%2e/out/data/key",
  "in%2f..%2fout/data/key",
  "secret/data/in/..%2fout/key",
  "secret/data/in%2f..%2fout%2fkey",
  "secret/data/in/../out/key",
  "secret/data/in//../out/key",
  "secret/data//out/key",
  "secret/data/%6fut/key",
  "secret/data/out%2fkey",
  "%6fut/data/key",
  "secret/data/in/%00/../../out/key",
  "secret/data/in\\..\\out\\key",
  "secret//data/out/key",
  "./secret/data/out/key",
  "../v1/secret/data/out/key",
  "secret%2fdata/out/key",
  "secret/data/out/key/",
  "secret/data/out/key%20",
  "secret/data/OUT/key",
  "secret/data/out/key?version=1&version=2",
  "secret/data/out/key#in/",
  "secret/subkeys/out/key",
  "secret/metadata/out/key",
  "out/metadata/key",
];

describe("spellings of paths", () => {
  let token = "";
  const server = shared(async () => {
    const started = await startVaultServer();
    await mustPut(started, "in/key", "mine");
    await mustPut(started, "out/key", canary);
    const can = ["get", "list", "put", "delete"];
    token = (await mustCreateToken(started, { name: "insider", can, paths: ["in/"] })).token;
    return started;
  });

  it("no spelling of a path reads or changes a secret outside of a token's paths", async () => {
    expect((await vault(server(), "GET", "secret/data/in/key", { token })).json.data.data.value).to.equal("mine");
    for (const path of spellings) {
      for (const method of ["GET", "LIST", "POST", "PATCH", "DELETE"]) {
        const body = method === "POST" || method === "PATCH" ? { body: { data: { value: "changed" } } } : {};
        const { status, text } = await vault(server(), method, path, { token, ...body });
        expect(status, `${method} ${path}`).to.be.within(400, 499);
        expect(text, `${method} ${path}`).not.to.contain(canary);
      }
    }
    expect((await vault(server(), "GET", "secret/data/out/key")).json.data).to.deep.include({
      data: { value: canary },
    });
    expect((await vault(server(), "GET", "secret/metadata/out/key")).json.data.current_version).to.equal(1);
  });
});
