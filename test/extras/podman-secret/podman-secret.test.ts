/** The shell driver of podman's secrets, called as podman calls it. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { shareTestServer } from "../../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustLock, mustUnlock } from "../../../tools/rig/test-client.js";
import { must, serverEnvironment, strongroom } from "../../cli/command-rows.js";
import { runHere } from "../../support/command-here.js";

describe("strongroom podman-secret", () => {
  const server = shareTestServer({}, mustInit);
  const here = () => serverEnvironment(server());
  const id = "1d4a1b2c3d4e5f60718293a4b";
  const podman = (action: string, input: string | Uint8Array = "", more: Record<string, string> = { SECRET_ID: id }) =>
    strongroom({ ...here(), ...more }, ["podman-secret", action], input);

  it("podman-secret stores, looks up, lists and deletes values byte for byte", async () => {
    const value = randomBytes(512_000); // podman's limit
    expect(await podman("list", "", {})).to.include({ code: 0, stdout: "" });
    expect(await podman("store", value)).to.include({ code: 0, stdout: "", stderr: "" });
    const found = await runHere(["podman-secret", "lookup"], { ...here(), SECRET_ID: id });
    expect(found.bytes.equals(value)).to.equal(true);
    expect(await podman("list", "", {})).to.include({ code: 0, stdout: `${id}\n` });
    expect(await podman("delete")).to.include({ code: 0, stdout: "" });
    expect(await podman("lookup")).to.include({ code: 4, stdout: "" });
    expect(await podman("delete")).to.include({ code: 4 });
    expect(await podman("list", "", {})).to.include({ code: 0, stdout: "" });
  });

  it("podman-secret requires SECRET_ID, and --config prints containers.conf with all four commands", async () => {
    for (const action of ["store", "lookup", "delete"]) expect(await podman(action, "x", {})).to.include({ code: 2 });
    const config = await must(here(), ["podman-secret", "--config"]);
    expect(config).to.match(/^\[secrets\]\ndriver = "shell"\n\n\[secrets\.opts\]\n/);
    expect(config.match(/^(\w+) = "strongroom podman-secret \1"$/gm)).to.have.length(4);
  });

  it("podman-secret works with a token for podman/ only, and gives nothing while the vault is locked", async () => {
    const { token } = await mustCreateToken(server(), {
      ...{ name: "podman", can: ["get", "list", "put", "delete"], paths: ["podman/"] },
    });
    const narrow = { SECRET_ID: id, STRONGROOM_TOKEN: token };
    expect(await podman("store", "v", narrow)).to.include({ code: 0 });
    await mustLock(server());
    for (const action of ["list", "lookup", "store", "delete"])
      expect(await podman(action, "w", narrow)).to.include({ code: 3, stdout: "" });
    await mustUnlock(server());
    expect(await podman("lookup", "", narrow)).to.include({ code: 0, stdout: "v" });
  });
});
