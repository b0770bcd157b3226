/** Commands with a token whose paths do not hold the key: refused, in the same words whether there is one or not. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import pMap from "p-map";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom } from "./command-rows.js";

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

  it("works inside of its paths", async () => {
    await pMap(
      Object.entries(uses),
      async ([name, row]) => {
        const { code, stderr } = await outcome(row, "in");
        expect(code, `${name}: ${stderr}`).to.equal(0);
      },
      { concurrency: 4 },
    );
  });

  it("is refused outside of them, and does not see whether the key exists", async () => {
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

  it("is refused changes inside of them too", async () => {
    for (const [name, row] of Object.entries(changes)) expect((await outcome(row, "in")).code, name).to.equal(14);
  });

  it("lists, and offers to ssh, only the keys inside of its paths", async () => {
    expect(await must(insider(), ["transit", "ls"])).to.equal("in/aes256-gcm96\nin/ed25519\n");
    const listed = await must(insider(), ["ssh-agent", "--", "ssh-add", "-L"]);
    expect(listed).to.match(/^ssh-ed25519 \S+ in\/ed25519\n$/);
  });

  it("stays the token of an agent in the background, also where a file holds it", async () => {
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
