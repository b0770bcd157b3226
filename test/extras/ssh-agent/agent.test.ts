/** The agent's protocol, as OpenSSH's own programs speak it, with keys that this process has. */
import { execFile } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { signingFor, sshPublicKey, sshSignature } from "../../../src/cli/kit/ssh/ssh-public-key.js";
import { agentServer } from "../../../src/extras/ssh-agent/agent.js";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";

const run = promisify(execFile);

const pairs = {
  ed25519: generateKeyPairSync("ed25519"),
  "ecdsa-p256": generateKeyPairSync("ec", { namedCurve: "P-256" }),
  "rsa-2048": generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

const keys = Object.entries(pairs).map(([type, { publicKey, privateKey }]) => {
  const blob = sshPublicKey(publicKey.export({ format: "pem", type: "spki" }).toString()) ?? Buffer.alloc(0);
  return { type, name: `keys/${type}`, blob, privateKey };
});

async function startAgent(): Promise<string> {
  const server = agentServer({
    list: async () => keys,
    sign: async (blob, data, flags) => {
      const key = keys.find((one) => one.blob.equals(blob));
      const signing = key && signingFor(key.type, flags);
      if (!key || !signing) return null;
      const hash = key.type === "ed25519" ? null : signing.how.hash.replace("sha2-", "sha");
      const signature = sign(hash, data, { key: key.privateKey, dsaEncoding: "ieee-p1363" });
      return sshSignature(signing.algorithm, `vault:v1:${signature.toString("base64")}`);
    },
    failed: () => {},
  });
  const socket = join(temporaryDirectory(), "agent");
  server.listen(socket);
  await once(server, "listening");
  later(() => new Promise((closed) => server.close(() => closed())));
  return socket;
}

describe("the protocol of the SSH agent", () => {
  it("ssh-add lists the agent's keys", async () => {
    const socket = await startAgent();
    const { stdout } = await run("ssh-add", ["-L"], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    const wanted = keys.map(({ blob, name }) => `${blob.toString("base64")} ${name}`);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.replace(/^\S+ /, "")),
    ).to.deep.equal(wanted);
  });

  for (const { type, blob } of keys) {
    it(`ssh-keygen verifies a signature with ${type}`, async () => {
      const directory = temporaryDirectory();
      const env = { ...process.env, SSH_AUTH_SOCK: await startAgent() };
      const file = (name: string, text: string) => {
        writeFileSync(join(directory, name), text, { mode: 0o600 });
        return join(directory, name);
      };
      const line = `${new TextDecoder().decode(blob.subarray(4, 4 + blob.readUInt32BE()))} ${blob.toString("base64")}`;
      const message = file("message", "a message");
      await run("ssh-keygen", ["-Y", "sign", "-n", "file", "-f", file("key.pub", line), message], { env });
      const allowed = file("allowed", `me ${line}\n`);
      const verifying = run("sh", [
        "-c",
        `ssh-keygen -Y verify -n file -I me -f "$1" -s "$2.sig" < "$2"`,
        "",
        allowed,
        message,
      ]);
      expect((await verifying).stdout).to.match(/^Good "file" signature for me/);
    });
  }

  it("a message that is too long closes the connection, and an unknown one fails", async () => {
    const socket = await startAgent();
    const exchange = async (bytes: Buffer) => {
      const connection = connect(socket);
      connection.end(bytes);
      const received: Buffer[] = [];
      connection.on("data", (chunk) => received.push(chunk));
      await once(connection, "close").catch(() => {});
      return Buffer.concat(received).toString("hex");
    };
    expect(await exchange(Buffer.from("7fffffff00", "hex"))).to.equal("");
    expect(await exchange(Buffer.from("0000000111", "hex"))).to.equal("0000000105");
    expect(await exchange(Buffer.from("000000060d7fffffff00", "hex"))).to.equal("0000000105");
  });

  it("a client that does not read gets no further responses", async () => {
    let lists = 0;
    const server = agentServer({
      list: async () => {
        lists++;
        return [{ name: "a", blob: Buffer.alloc(64 * 1024) }];
      },
      sign: async () => null,
      failed: () => {},
    });
    const socket = join(temporaryDirectory(), "agent");
    server.listen(socket);
    await once(server, "listening");
    later(() => new Promise((closed) => server.close(() => closed())));
    const connection = connect(socket).pause();
    connection.write(Buffer.from("000000010b".repeat(10_000), "hex"));
    let before = -1;
    while (lists === 0 || lists !== before) {
      before = lists;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    connection.destroy();
    expect(lists).to.be.below(1_000);
  });
});
