/** `strongroom transit`, `encrypt`, `decrypt`, `sign` and `verify`; with a token for another folder, refused in the same words whether the key exists or not. */
import { execFile, execFileSync } from "node:child_process";
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { expect } from "chai";
import pMap from "p-map";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { runOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("transit keys on the command line", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    const here = { STRONGROOM_HOME: started.home };
    await must(here, ["transit", "create", "app/aes"]);
    await must(here, ["transit", "create", "app/ed", "--type", "ed25519"]);
    await must(here, ["transit", "create", "app/ec", "--type", "ecdsa-p256"]);
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  testRows(here, {
    "a list": { args: ["transit", "ls"], exit: 0, out: "app/aes\napp/ec\napp/ed\n" },
    "a list as JSON": { args: ["transit", "ls", "--json"], exit: 0, out: /"name":"app\/aes","type":"aes256-gcm96"/ },
    "a key": { args: ["transit", "show", "app/ed"], exit: 0, out: /version 1, [\s\S]*-----BEGIN PUBLIC KEY-----/ },
    "a key for authorized_keys": {
      args: ["transit", "show", "app/ed", "--ssh"],
      exit: 0,
      out: /^ssh-ed25519 AAAA\S+ app\/ed$/m,
    },
    "a key twice": { args: ["transit", "create", "app/aes"], exit: 7, err: /transit key app\/aes already exists/ },
    "a key that is not there in a millisecond": {
      args: ["transit", "create", "app/late", "--timeout", "0.001s"],
      exit: 10,
      err: /no response within 1 ms/,
    },
    "a missing key": {
      args: ["encrypt", "app/none"],
      exit: 4,
      err: /there is no transit key app\/none; strongroom transit ls {2}lists them\n/,
    },
    "a key that cannot encrypt": {
      args: ["encrypt", "app/ed"],
      input: "x",
      exit: 2,
      err: /app\/ed is of type ed25519/,
    },
    "a missing setting": { args: ["transit", "config", "app/aes"], exit: 2, err: /config needs a setting/ },
    "a deletion that is not allowed": { args: ["transit", "rm", "app/aes", "-y"], exit: 2, err: /must not be deleted/ },
    "input that is no ciphertext": {
      args: ["decrypt", "app/aes"],
      input: "hello",
      exit: 2,
      err: /neither a ciphertext/,
    },
    "a ciphertext of another key": {
      args: ["decrypt", "app/aes"],
      input: `vault:v1:${"A".repeat(60)}`,
      exit: 2,
      err: /does not decrypt/,
    },
    "a misplaced flag": { args: ["transit", "ls", "--exportable"], exit: 2, err: /--exportable has no effect with ls/ },
  });

  it("encrypt and decrypt work on standard input, also with additional data", async () => {
    const sealed = await must(here(), ["encrypt", "app/aes", "--aad", "47"], "hello");
    expect(sealed).to.match(/^vault:v1:\S+\n$/);
    expect(await must(here(), ["decrypt", "app/aes", "--aad", "47"], sealed)).to.equal("hello");
    expect((await strongroom(here(), ["decrypt", "app/aes"], sealed)).code).to.equal(2);
  });

  it("encrypt splits a large file into chunks; decrypt gives it back, and refuses it when it is damaged", async () => {
    const directory = temporaryDirectory();
    const file = (name: string) => join(directory, name);
    const content = randomBytes(1_500_000);
    writeFileSync(file("plain"), content);
    await must(here(), ["encrypt", "app/aes", file("plain"), "-o", file("sealed")]);
    expect(readFileSync(file("sealed")).toString("latin1", 0, 33)).to.equal("strongroom-encrypted v1\nvault:v1:");
    await must(here(), ["decrypt", "app/aes", file("sealed"), "-o", file("opened")]);
    expect(readFileSync(file("opened")).equals(content)).to.equal(true);
    writeFileSync(file("cut"), readFileSync(file("sealed")).subarray(0, 1_000_000));
    const { code, stderr } = await strongroom(here(), ["decrypt", "app/aes", file("cut"), "-o", file("lost")]);
    expect(code, stderr).to.equal(12);
    expect(() => readFileSync(file("lost"))).to.throw(/ENOENT/);
  });

  it("sign makes a signature that verify, and OpenSSL, accept", async () => {
    const directory = temporaryDirectory();
    const file = (name: string) => join(directory, name);
    const message = randomBytes(300_000);
    writeFileSync(file("message"), message);
    for (const key of ["app/ed", "app/ec"]) {
      const signature = await must(here(), ["sign", key, file("message")]);
      writeFileSync(file("signature"), signature);
      await must(here(), ["verify", key, file("message"), "--signature", file("signature")]);
      const wrong = await strongroom(here(), ["verify", key, "--signature", file("signature")], "another message");
      expect(wrong.code, wrong.stderr).to.equal(12);
      const { versions } = JSON.parse(await must(here(), ["transit", "show", key, "--json"]));
      writeFileSync(file("public"), versions["1"].publicKey);
      writeFileSync(file("raw"), Buffer.from(signature.trim().replace("vault:v1:", ""), "base64"));
      writeFileSync(file("digest"), createHash("sha256").update(message).digest());
      const input = key === "app/ed" ? ["-rawin", "-in", file("message")] : ["-in", file("digest")];
      execFileSync("openssl", [
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        file("public"),
        "-sigfile",
        file("raw"),
        ...input,
      ]);
    }
  });

  it("transit import takes a key of OpenSSH, with its passphrase", async () => {
    const directory = temporaryDirectory();
    const file = (name: string) => join(directory, name);
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-a", "2", "-N", "secret words", "-f", file("key")]);
    writeFileSync(file("passphrase"), "secret words\n");
    await must(here(), ["transit", "import", "ssh/me", file("key"), "--passphrase-file", file("passphrase")]);
    const [algorithm, blob] = readFileSync(file("key.pub"), "utf8").split(" ");
    expect(await must(here(), ["transit", "show", "ssh/me", "--ssh"])).to.equal(`${algorithm} ${blob} ssh/me\n`);
    writeFileSync(file("passphrase"), "wrong words\n");
    const again = ["transit", "import", "ssh/other", file("key"), "--passphrase-file", file("passphrase")];
    expect((await strongroom(here(), again)).code).to.equal(9);
    const asked = ["wrong", "wrong again", "secret words"].map((keys) => ({
      question: `Passphrase of ${file("key")}: `,
      keys: `${keys}\r`,
    }));
    const typed = await runOnTerminal(["transit", "import", "ssh/typed", file("key")], asked, here());
    expect(typed.code, typed.shown).to.equal(0);
    expect(typed.shown).to.match(/wrong passphrase, 2 tries left.*wrong passphrase, 1 try left/s);
    await must(here(), ["transit", "config", "ssh/me", "--deletion-allowed"]);
    await must(here(), ["transit", "rm", "ssh/me", "-y"]);
  });

  it("transit import takes an identity of age, whose recipient is shown", async () => {
    const file = join(temporaryDirectory(), "key.txt");
    const identity = await generateX25519Identity();
    const recipient = await identityToRecipient(identity);
    writeFileSync(file, `# created: 2026-03-01T12:00:00Z\n# public key: ${recipient}\n${identity}\n`);
    await must(here(), ["transit", "import", "age/me", file]);
    expect(await must(here(), ["transit", "show", "age/me"])).to.include(`\n${recipient}\n`);
    const ssh = await strongroom(here(), ["transit", "show", "age/me", "--ssh"]);
    expect([ssh.code, ssh.stderr]).to.deep.equal([2, "strongroom: age/me is of type x25519, which SSH does not use\n"]);
    for (const damaged of [`${identity}\n${identity}`, identity.replace(/.$/, (last) => (last === "Q" ? "P" : "Q"))]) {
      writeFileSync(file, damaged);
      expect((await strongroom(here(), ["transit", "import", "age/other", file])).code).to.equal(2);
    }
  });

  it("transit import refuses a file in PEM whose numbers do not belong together", async () => {
    const file = join(temporaryDirectory(), "key.pem");
    const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs1", format: "der" });
    key.writeUInt8(key.readUInt8(key.length - 3) ^ 1, key.length - 3);
    const [begin, end] = ["BEGIN", "END"].map((word) => `-----${word} RSA PRIVATE KEY-----`);
    writeFileSync(file, `${begin}\n${key.toString("base64")}\n${end}\n`);
    const { code, stderr } = await strongroom(here(), ["transit", "import", "ssh/damaged", file]);
    expect(code, stderr).to.equal(2);
    expect(stderr).to.equal(
      "strongroom: the private key is damaged: its parts do not belong together; use an intact copy\n",
    );
  });

  it("encrypt works with a token that can do nothing else", async () => {
    const { token } = await mustCreateToken(server(), { name: "writer", can: ["encrypt"], paths: ["app/"] });
    const environment = { ...here(), STRONGROOM_TOKEN: token };
    const sealed = await must(environment, ["encrypt", "app/aes"], "hello");
    expect((await strongroom(environment, ["decrypt", "app/aes"], sealed)).code).to.equal(14);
    expect((await strongroom(environment, ["get", "app/aes"])).code).to.equal(14);
  });
});

const types = ["aes256-gcm96", "ed25519"] as const;

describe("commands of transit keys with a token for another folder", () => {
  let token = "";
  /** The file of a signature of the input by in/ed25519. */
  let signature = "";
  const ciphertexts = new Map<string, string>();
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    const root = { STRONGROOM_HOME: started.home };
    for (const folder of ["in", "out"]) {
      for (const type of types) await must(root, ["transit", "create", `${folder}/${type}`, "--type", type]);
      await mustPut(started, `${folder}/code`, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
      ciphertexts.set(folder, await must(root, ["encrypt", `${folder}/aes256-gcm96`], "input"));
    }
    signature = join(temporaryDirectory(), "signature");
    writeFileSync(signature, await must(root, ["sign", "in/ed25519"], "input"));
    const can = ["encrypt", "decrypt", "sign", "use"];
    token = (await mustCreateToken(started, { name: "insider", can, paths: ["in/"] })).token;
  });
  const insider = () => ({ STRONGROOM_HOME: server().home, STRONGROOM_TOKEN: token });

  type Row = { readonly args: (folder: string) => readonly string[]; readonly input?: (folder: string) => string };
  const plain = () => "input";
  const aes = (folder: string) => `${folder}/aes256-gcm96`;
  const ed25519 = (folder: string) => `${folder}/ed25519`;
  /** Any token within the paths may do this. */
  const uses: Readonly<Record<string, Row>> = {
    encrypt: { args: (folder) => ["encrypt", aes(folder)], input: plain },
    decrypt: { args: (folder) => ["decrypt", aes(folder)], input: (folder) => ciphertexts.get(folder) ?? "" },
    sign: { args: (folder) => ["sign", ed25519(folder)], input: plain },
    verify: { args: (folder) => ["verify", ed25519(folder), "--signature", signature], input: plain },
    "transit show": { args: (folder) => ["transit", "show", ed25519(folder)] },
    "transit show --ssh": { args: (folder) => ["transit", "show", ed25519(folder), "--ssh"] },
    otp: { args: (folder) => ["otp", `${folder}/code`] },
  };
  /** Only the root token may do this. */
  const changes: Readonly<Record<string, Row>> = {
    "transit create": { args: (folder) => ["transit", "create", `${folder}/new`] },
    "transit rotate": { args: (folder) => ["transit", "rotate", aes(folder)] },
    "transit config": { args: (folder) => ["transit", "config", aes(folder), "--deletion-allowed"] },
    "transit rm": { args: (folder) => ["transit", "rm", aes(folder), "-y"] },
  };

  async function outcome({ args, input }: Row, folder: string, rename: (arg: string) => string = (arg) => arg) {
    const { code, stdout, stderr } = await strongroom(insider(), args(folder).map(rename), input?.(folder));
    return { code, stdout, stderr };
  }

  const toMissing = (arg: string) => arg.replace(/^out\/.*/, "out/none");
  const withoutName = (text: string) => text.replace(/out\/[a-z0-9-]+/g, "NAME");

  it("a token uses the keys inside of its paths", async () => {
    await pMap(
      Object.entries(uses),
      async ([name, row]) => {
        const { code, stderr } = await outcome(row, "in");
        expect(code, `${name}: ${stderr}`).to.equal(0);
      },
      { concurrency: 4 },
    );
  });

  it("a token is refused outside of its paths, and does not see whether the key exists", async () => {
    const all = Object.entries({ ...uses, ...changes });
    await pMap(
      all,
      async ([name, row]) => {
        const [there, missing] = [await outcome(row, "out"), await outcome(row, "out", toMissing)];
        expect([there.code, there.stdout], `${name}: ${there.stderr}`).to.deep.equal([14, ""]);
        expect(withoutName(there.stderr), name).to.equal(withoutName(missing.stderr));
        expect(missing.code, name).to.equal(14);
      },
      { concurrency: 4 },
    );
  });

  it("a token is refused changes inside of its paths too", async () => {
    for (const [name, row] of Object.entries(changes)) expect((await outcome(row, "in")).code, name).to.equal(14);
  });

  it("a token lists, and offers to ssh, only the keys inside of its paths", async () => {
    expect(await must(insider(), ["transit", "ls"])).to.equal("in/aes256-gcm96\nin/ed25519\n");
    const listed = await must(insider(), ["ssh-agent", "--", "ssh-add", "-L"]);
    expect(listed).to.match(/^ssh-ed25519 \S+ in\/ed25519\n$/);
  });

  it("an agent in the background keeps its token, also where a file holds it", async () => {
    const file = join(temporaryDirectory(), "token");
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const started = await must({ STRONGROOM_HOME: server().home, STRONGROOM_TOKEN_FILE: file }, ["ssh-agent"]);
    const [, socket = ""] = /^SSH_AUTH_SOCK='([^']+)'/.exec(started) ?? [];
    const pid = Number(/^SSH_AGENT_PID=(\d+);/m.exec(started)?.[1]);
    later(() => void process.kill(pid, "SIGTERM"));
    const env = { ...process.env, SSH_AUTH_SOCK: socket };
    const { stdout } = await promisify(execFile)("ssh-add", ["-L"], { env });
    expect(stdout).to.match(/^ssh-ed25519 \S+ in\/ed25519\n$/);
  });
});
