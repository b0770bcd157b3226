/** Foreign and future formats of every file. Results: docs/inside/torture.md. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { StartError } from "../../src/errors.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustUnlock, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";

type Row = {
  /** Below the home. */
  readonly file: string;
  readonly content: (old: Buffer) => Buffer | string;
  /** `serves`: the secret can be read. */
  readonly start: "serves" | RegExp;
  /** doctor's exit code. */
  readonly doctor: 0 | 12;
};

const later = (old: Buffer) => old.toString("utf8").replace(/"version": ?\d+/, '"version":99');
const flippedAt = (at: number, byte: number) => (old: Buffer) => {
  const changed = Buffer.from(old);
  changed[at] = byte;
  return changed;
};
const noise = () => Buffer.alloc(300, "\u0000\u00ffnot ours\n", "latin1");

const rows: readonly Row[] = [
  { file: "vault/gen-1/header.json", content: later, start: /header.*then start again/, doctor: 12 },
  { file: "vault/gen-1/header.json", content: noise, start: /header.*then start again/, doctor: 12 },
  { file: "vault/gen-1/journal", content: noise, start: /journal.*is damaged/, doctor: 12 },
  { file: "vault/gen-1/journal", content: () => "SRVJ\u0002", start: /journal.*is damaged/, doctor: 12 },
  { file: "vault/gen-1/restored", content: noise, start: "serves", doctor: 12 },
  { file: "vault/gen-1/of-a-later-version.json", content: noise, start: "serves", doctor: 12 },
  { file: "vault/gen-1/secrets/b.sealed", content: noise, start: "serves", doctor: 12 },
  { file: "vault/gen-1/secrets/b.sealed", content: flippedAt(4, 99), start: "serves", doctor: 12 },
  { file: "vault/gen-1/secrets/b.later", content: noise, start: "serves", doctor: 12 },
  {
    file: "vault/current",
    content: () => "generation 7 of format 2\n",
    start: /current is missing or damaged/,
    doctor: 12,
  },
  { file: "vault/current", content: noise, start: /current is missing or damaged/, doctor: 12 },
  { file: "vault/server.pid", content: noise, start: "serves", doctor: 0 },
  { file: "vault/server.pid", content: () => '{"pid":{"format":2}}', start: "serves", doctor: 0 },
  { file: "vault/gen-99999999999", content: noise, start: "serves", doctor: 12 },
  { file: "token", content: noise, start: /token/, doctor: 12 },
  { file: "tls/cert.pem", content: noise, start: /cert\.pem|certificate/, doctor: 12 },
  { file: "tls/key.pem", content: noise, start: /key\.pem|certificate/, doctor: 12 },
  { file: "strongroom.sock", content: noise, start: /is not a socket: move it away/, doctor: 12 },
];

describe("files of a foreign or later format", function () {
  this.timeout(180_000);
  let home = "";
  before(async () => {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    for (const path of ["a", "b"]) await mustPut(server, path, path);
    await server.stop();
    home = join(temporaryDirectory(), "home");
    copyTree(server.home, home);
  });

  for (const [n, { file, content, start, doctor }] of rows.entries()) {
    it(`${file} (${n}) ${start instanceof RegExp ? "stops the start" : "leaves the rest served"}, doctor exits ${doctor}, and the file stays`, async () => {
      const copy = join(temporaryDirectory(), "home");
      copyTree(home, copy);
      const path = join(copy, file);
      const written = Buffer.from(content(existsSync(path) ? readFileSync(path) : Buffer.alloc(0)));
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, written, { mode: 0o600 });
      const found = await run(["doctor"], { STRONGROOM_HOME: copy });
      expect([found.code, found.stderr.includes("    at ")], found.stdout + found.stderr).to.deep.equal([
        doctor,
        false,
      ]);
      const outcome = await tryStart(copy);
      if (start === "serves") expect(outcome).to.equal("serves");
      else
        expect(outcome)
          .to.match(start)
          .and.to.match(/^[^\n]*$/);
      const mayChange = ["vault/server.pid", "vault/gen-1/restored", "tls/cert.pem", "tls/key.pem"];
      if (!mayChange.includes(file)) expect(readFileSync(path).equals(written)).to.equal(true);
    });
  }

  it("a backup of a later format is refused with a message, and nothing is restored", async () => {
    const directory = temporaryDirectory();
    const file = join(directory, "b.tar");
    expect((await run(["backup", file], { STRONGROOM_HOME: home })).code).to.equal(0);
    const target = join(directory, "target");
    for (const change of [
      (tar: Buffer) =>
        Buffer.from(
          tar.toString("latin1").replace(/"version": ?\d/, (text) => text.replace(/\d$/, "9")),
          "latin1",
        ),
      noise,
    ]) {
      writeFileSync(file, change(readFileSync(file)));
      const { code, stderr } = await run(["restore", file], { STRONGROOM_HOME: target });
      expect([code, stderr.includes("    at ")], stderr).to.deep.equal([12, false]);
      expect(existsSync(join(target, "vault", "current"))).to.equal(false);
    }
  });
});

/** "serves" when the secret a can be read; otherwise what the start says. */
async function tryStart(home: string): Promise<string> {
  try {
    const server = await startTestServer({ home, socket: null });
    await mustUnlock(server);
    expect((await mustGet(server, "a"))["value"]).to.equal("a");
    expect((await send(server, { path: "/v1/secrets/b" })).status).to.be.oneOf([200, 500]);
    await server.stop();
    return "serves";
  } catch (error) {
    if (error instanceof StartError) return error.message;
    throw error;
  }
}
