/** Private keys that ssh-keygen and openssl have written. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileKeyType, readKeyFile, UnusableKey } from "../../src/cli/kit/ssh/openssh-key.js";
import { sshPublicKey } from "../../src/cli/kit/ssh/ssh-public-key.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";

const passphrase = "a passphrase with ü";
const typed = new TextEncoder().encode(passphrase);

describe("files of private keys", () => {
  const types: readonly (readonly [args: string, type: FileKeyType])[] = [
    ["-t ed25519", "ed25519"],
    ["-t ecdsa -b 256", "ecdsa-p256"],
    ["-t rsa -b 2048", "rsa-2048"],
    ["-t ed25519 -Z aes256-gcm@openssh.com", "ed25519"],
    ["-t ed25519 -Z aes256-cbc", "ed25519"],
    ["-t ecdsa -b 256 -m PKCS8", "ecdsa-p256"],
    ["-t rsa -b 2048 -m PEM", "rsa-2048"],
  ];
  for (const [args, type] of types) {
    it(`a key of ssh-keygen ${args} gives the same public key, with a passphrase or without`, async () => {
      for (const secret of ["", passphrase]) {
        const file = join(temporaryDirectory(), "key");
        execFileSync("ssh-keygen", ["-q", ...args.split(" "), "-a", "2", "-N", secret, "-C", "me@here", "-f", file]);
        const key = readKeyFile(readFileSync(file), secret === "" ? null : typed);
        expect(key.type).to.equal(type);
        const parsed = createPrivateKey({ key: key.der, format: "der", type: "pkcs8" });
        const pem = createPublicKey(parsed).export({ format: "pem", type: "spki" }).toString();
        const [, wanted] = readFileSync(`${file}.pub`, "utf8").split(" ");
        expect(sshPublicKey(pem)?.toString("base64")).to.equal(wanted);
      }
    });
  }

  async function problem(bytes: Buffer): Promise<string> {
    try {
      readKeyFile(bytes, typed);
      return "read";
    } catch (error) {
      if (error instanceof UnusableKey) return error.reason;
      throw error;
    }
  }

  it("a key file that cannot be used is refused with its reason", async () => {
    const made = (...args: readonly string[]) => {
      const file = join(temporaryDirectory(), "key");
      execFileSync("ssh-keygen", ["-q", "-a", "2", ...args, "-f", file]);
      return readFileSync(file);
    };
    const ed25519 = made("-t", "ed25519", "-N", "");
    const cut = Buffer.from(ed25519.toString().replace(/\n[A-Za-z0-9+/]{20}/, "\n"));
    const problems = [
      await problem(made("-t", "ed25519", "-N", "another one")),
      await problem(made("-t", "ecdsa", "-b", "384", "-N", "")),
      await problem(made("-t", "rsa", "-b", "3072", "-N", "")),
      await problem(made("-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "another one")),
      await problem(cut),
      await problem(Buffer.from("not a key")),
    ];
    expect(problems).to.deep.equal(["passphrase", "type", "type", "passphrase", "format", "format"]);
  });

  for (const type of ["ed25519", "ecdsa"]) {
    it(`a key of ssh-keygen -t ${type} is refused where its public part does not fit its private one`, async () => {
      const file = join(temporaryDirectory(), "key");
      execFileSync("ssh-keygen", ["-q", "-t", type, "-N", "", "-C", "", "-f", file]);
      const [head = "", ...rest] = readFileSync(file, "utf8").trim().split("\n");
      const tail = rest.pop() ?? "";
      const bytes = Buffer.from(rest.join(""), "base64");
      const { der } = readKeyFile(readFileSync(file), null);
      const [privateAt, publicAt] = [bytes.indexOf(der.subarray(-16)), bytes.indexOf(type) + 40];
      for (const at of [privateAt, privateAt + 15, publicAt]) {
        const damaged = Buffer.from(bytes);
        damaged.writeUInt8(damaged.readUInt8(at) ^ 4, at);
        const armored = Buffer.from(`${head}\n${damaged.toString("base64")}\n${tail}\n`);
        expect(await problem(armored), `byte ${at}`).to.equal("format");
      }
    });
  }

  it("an RSA key with a damaged number, or with none, is refused", async () => {
    const file = join(temporaryDirectory(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "rsa", "-b", "2048", "-N", "", "-C", "", "-f", file]);
    const [head = "", ...rest] = readFileSync(file, "utf8").trim().split("\n");
    const tail = rest.pop() ?? "";
    const bytes = Buffer.from(rest.join(""), "base64");
    const armored = (damaged: Buffer) => Buffer.from(`${head}\n${damaged.toString("base64")}\n${tail}\n`);
    expect(await problem(armored(bytes))).to.equal("read");
    const numbersStart = bytes.lastIndexOf("ssh-rsa") + "ssh-rsa".length;
    for (let at = numbersStart; at < bytes.length - 24; at += 13) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
      expect(await problem(armored(damaged)), `byte ${at}`).to.equal("format");
    }
    const field = (value: string | Buffer) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.from(value).length);
      return Buffer.concat([length, Buffer.from(value)]);
    };
    const empty = Buffer.concat([Buffer.alloc(8), field("ssh-rsa"), ...new Array<Buffer>(7).fill(field(""))]);
    const none = [field("none"), field("none"), field(""), Buffer.of(0, 0, 0, 1), field("")];
    const openSsh = Buffer.concat([Buffer.from("openssh-key-v1\0"), ...none, field(empty)]);
    expect(await problem(armored(openSsh))).to.equal("format");
  });
});
