/** `strongroom vault-env` and what doctor says of the port for Vault's clients. */
import { expect } from "chai";
import { realScryptCost, startLocalServer } from "../support/server.js";
import { mustCreateToken, mustInit } from "../support/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

describe("strongroom vault-env", () => {
  it("prints address, certificate and token for a shell, and as JSON", async () => {
    const server = await startLocalServer({ ...realScryptCost, vaultPort: 0 });
    await mustInit(server);
    const values = {
      ADDR: `https://localhost:${server.vaultPort}`,
      CACERT: server.certificateFile,
      TOKEN: server.token,
    };
    const named = (prefix: string) =>
      Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value] as const);
    const variables = [...named("VAULT"), ...named("BAO")];
    const { stdout } = mustDo(await strongroom(server, ["vault-env"]));
    expect(stdout).to.equal(variables.map(([name, value]) => `export ${name}=${value}\n`).join(""));
    const { stdout: json } = mustDo(await strongroom(server, ["vault-env", "--json"]));
    expect(JSON.parse(json)).to.deep.equal(Object.fromEntries(variables));
    const { token } = await mustCreateToken(server, { name: "ci" });
    const own = await strongroom(server, ["vault-env"], { environment: { STRONGROOM_TOKEN: token } });
    expect(mustDo(own).stdout).to.contain(`VAULT_TOKEN=${token}\n`).and.not.to.contain(server.token);
    const { stdout: said } = mustDo(await strongroom(server, ["doctor"]));
    expect(said).to.contain(`clients of Vault are served on port ${server.vaultPort}\n`);
    expect(JSON.parse((await strongroom(server, ["doctor", "--json"])).stdout).vaultPort).to.equal(server.vaultPort);
  });

  it("says how to turn the port on", async () => {
    const server = await startLocalServer(realScryptCost);
    mustRefuseWith(await strongroom(server, ["vault-env"]), 2, "--vault-port 8200");
    expect((await strongroom(server, ["doctor"])).stdout).not.to.contain("Vault");
  });
});
