/** `strongroom vault-env` and what doctor says of the port for Vault's clients. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { realScryptCost, shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

describe("strongroom vault-env", () => {
  it("vault-env prints address, certificate and token for a shell, and as JSON", async () => {
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

  it("vault-env says how to turn the port on", async () => {
    const server = await startLocalServer(realScryptCost);
    mustRefuseWith(await strongroom(server, ["vault-env"]), 2, "--vault-port 8200");
    expect((await strongroom(server, ["doctor"])).stdout).not.to.contain("Vault");
  });
});

describe("programs that commands start", () => {
  const server = shareLocalServer(realScryptCost, mustInit);

  const commands: readonly (readonly [args: readonly string[], program: string])[] = [
    [["edit", "a"], "vi"],
    [["run", "--set", "ON_PURPOSE=token", "--", "show"], "show"],
    [["ssh-agent", "--", "show"], "show"],
    [["mcp"], "strongroom-mcp"],
  ];
  for (const [args, program] of commands) {
    it(`the program of ${args.join(" ")} gets no variable with a token, whatever its name`, async () => {
      const { token } = await mustCreateToken(server(), { name: args[0] ?? "" });
      for (const path of ["a", "token"]) await mustPut(server(), path, { value: token });
      const directory = temporaryDirectory();
      const [shown, file] = [join(directory, "shown"), join(directory, program)];
      writeFileSync(file, `#!/bin/sh\nenv > ${shown}\n`);
      chmodSync(file, 0o755);
      const environment = {
        ...{ PATH: `${directory}:/usr/bin:/bin`, EDITOR: "vi", KEPT: "kept" },
        ...{ STRONGROOM_TOKEN: server().token, VAULT_TOKEN: server().token, BAO_TOKEN: token },
        ...{ HEADER: `Authorization: Bearer ${server().token}\n` },
      };
      await strongroom(server(), args, { environment });
      const found = readFileSync(shown, "utf8").split("\n");
      expect(found).to.include("KEPT=kept");
      const names = found.filter((line) => line.includes(server().token) || line.includes(token));
      const wanted = { run: [`ON_PURPOSE=${token}`], mcp: [`STRONGROOM_TOKEN=${server().token}`] };
      expect(names).to.deep.equal(wanted[args[0] as keyof typeof wanted] ?? []);
    });
  }
});
