/** Servers that break a promise on purpose: `strongroom prove` finds and names each of them. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { headerText } from "../../tools/rig/decoder.js";
import { mainFile, type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { listFailures, needsForeignMemory, prove } from "./run-prove.js";

const root = resolve(dirname(mainFile), "..", "..");
const poolFile = fileURLToPath(new URL("../../src/cli/thread-pool.cjs", import.meta.url));

/** A copy of the built package that may be changed. */
function copyOfPackage(): string {
  const copy = temporaryDirectory();
  mkdirSync(join(copy, "dist"));
  for (const name of [
    "bin",
    "package.json",
    "dist/program",
    "dist/workers/key-worker.cjs",
    "dist/SHA256SUMS",
    "dist/openapi.json",
  ]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Starts the copy with a module that is loaded before it. */
async function startPatched(copy: string, preloaded: string): Promise<ServerProcess> {
  const patch = join(temporaryDirectory(), "patch.cjs");
  writeFileSync(patch, `process.channel?.unref();\n${preloaded}`);
  const main = join(copy, "dist", "program", "entry.cjs");
  const server = await startProcess([], {}, { main, nodeFlags: ["--require", poolFile, "--require", patch] });
  await mustInit(server);
  await mustPut(server, "app/a", "a value that is long enough to be searched for");
  return server;
}

/** Keeps what `take` makes of the requests' bytes. */
function keeping(take: string): string {
  return `const { IncomingMessage } = require("node:http");
    const push = IncomingMessage.prototype.push;
    globalThis.kept = [];
    const take = ${take};
    IncomingMessage.prototype.push = function (chunk, encoding) {
      if (chunk) take(chunk);
      return push.call(this, chunk, encoding);
    };`;
}

describe("servers that prove must fail", function () {
  this.timeout(0);
  before(needsForeignMemory);

  it("prove fails a server that keeps the key after a lock, with changed program files and a foreign build", async () => {
    const copy = copyOfPackage();
    const file = join(copy, "dist", "workers", "key-worker.cjs");
    const cipher = /this\.#cipher = .*"aes-256-cfb", key, /;
    const code = readFileSync(file, "utf8");
    expect(code).to.match(cipher);
    const channel = 'new (require("node:worker_threads").BroadcastChannel)("debug")';
    const sending = `{ const debug = ${channel}; debug.postMessage(Uint8Array.from(key)); debug.unref(); }`;
    writeFileSync(
      file,
      code.replace(cipher, (statement) => `${sending} ${statement}`),
    );
    const server = await startPatched(
      copy,
      `const { BroadcastChannel, isMainThread } = require("node:worker_threads");
       if (isMainThread) {
         globalThis.kept = [];
         const channel = new BroadcastChannel("debug");
         channel.onmessage = ({ data }) => globalThis.kept.push(data);
         channel.unref();
       }`,
    );
    await mustLock(server);
    writeFileSync(join(copy, "dist", "program", "entry.cjs"), "\n// changed\n", { flag: "a" });
    writeFileSync(join(copy, "dist", "program", "added.cjs"), "");
    const proven = await prove(server.home);
    expect(proven.code).to.equal(12);
    const failures = listFailures(proven).join("\n");
    expect(failures).to.match(/attacker: locked: places that open the vault: [1-9]/);
    expect(failures).to.match(/known-keys: locked: copies of the master key.*: [1-9].*raw/);
    expect(failures).to.match(/^program: changed files: dist\/program\/entry.cjs, dist\/workers\/key-worker.cjs$/m);
    expect(failures).to.match(/^program: files that are not in the list: dist\/program\/added.cjs$/m);
  });

  describe("a server that keeps requests as strings, with a heap snapshot and a changed header", () => {
    let failures = "";
    before(async () => {
      // The snapshot is a thread's: that of the server makes it much larger, and its memory is searched.
      const thread = `const { workerData: { text, isWritten } } = require("node:worker_threads");
        globalThis.kept = text;
        require("node:v8").writeHeapSnapshot("debug.heapsnapshot");
        Atomics.store(isWritten, 0, 1);
        Atomics.notify(isWritten, 0);`;
      const take = `(chunk) => {
        const text = chunk.toString();
        globalThis.kept.push(text);
        if (!text.includes("searched for")) return;
        const isWritten = new Int32Array(new SharedArrayBuffer(4));
        const { Worker } = require("node:worker_threads");
        new Worker(${JSON.stringify(thread)}, { eval: true, workerData: { text, isWritten } }).unref();
        Atomics.wait(isWritten, 0, 0);
      }`;
      const server = await startPatched(copyOfPackage(), keeping(take));
      addSlot(server);
      const proven = await prove(server.home);
      expect(proven.code).to.equal(12);
      failures = listFailures(proven).join("\n");
    });

    it("prove finds the passphrase in memory", () => {
      expect(failures).to.match(/^known-keys: unlocked: copies of the passphrase.*: [1-9].*raw/m);
    });

    it("prove finds a value in a heap snapshot that a debugger left", () => {
      expect(failures).to.match(/^disk: files that hold a value: .*debug\.heapsnapshot/m);
    });

    it("prove finds a slot added to the header by an attacker", () => {
      expect(failures).to.contain("MAC over all slots of the header: does not match");
      expect(failures).to.contain("slots in the header, as the server lists its keys: 0bdd38mn, passphrase");
    });
  });
});

function addSlot(server: ServerProcess): void {
  const text = headerText(server.home);
  const [, salt = ""] = /"salt":("[^"]+")/.exec(text) ?? [];
  const [, wrapped = ""] = /("wrappedKey":"[^"]+","check":"[^"]+")/.exec(text) ?? [];
  const slot = `,{"kind":"key","id":"0bdd38mn","label":"mine","createdAt":"2026-11-22T05:50:32.573Z","salt":${salt},${wrapped}}]`;
  writeFileSync(
    join(server.vaultPath, "gen-1", "header.json"),
    text.replace(/\](?=,"mac")/, () => slot),
  );
}
