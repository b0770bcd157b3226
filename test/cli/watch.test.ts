/** `strongroom run --watch`: restarts and signals after a change of a secret, and what does not stop the command. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { startProcess } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut, mustStatus, mustUnlock, send } from "../../tools/rig/test-client.js";
import { onlyWith } from "../support/needs.js";
import { mustRefuseWith, type Started, start, strongroom } from "./run-command.js";

/** Output of the command so far, and a wait for more of it. */
function collectOutput({ child }: Started) {
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) child[name].on("data", (part) => (texts[name] += String(part)));
  const until = async (name: "stdout" | "stderr", text: string) => {
    while (!texts[name].includes(text)) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  return { texts, until };
}

const quick = ["--watch", "--interval", "50ms"];
const printing = 'echo "pid $$ key $KEY"; exec sleep 1000';

describe("strongroom run --watch", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
  });
  const begin = async (folder: string, flags: readonly string[], script: string) => {
    await mustPut(server(), `${folder}/KEY`, "first");
    const own = flags.includes("--interval") ? ["--watch"] : quick;
    const started = start(server(), ["run", "--prefix", folder, ...own, ...flags, "--", "sh", "-c", script]);
    return { ...started, ...collectOutput(started) };
  };

  it("a change restarts the command with the new value, and a signal is passed on", async () => {
    const { child, finished, until, texts } = await begin("restart", [], printing);
    await until("stdout", "key first");
    await mustPut(server(), "restart/KEY", "second");
    await until("stdout", "key second");
    expect(texts.stderr).to.equal("strongroom: restart/KEY changed: restarting the command\n");
    await mustPut(server(), "restart/NEW", "in the folder");
    await until("stderr", "restart/NEW changed");
    child.kill("SIGTERM");
    expect((await finished).code).to.equal(143);
  });

  it("a command that does not end is killed", async () => {
    const script = `trap "" TERM; echo "key $KEY"; while :; do sleep 0.05; done`;
    const { child, finished, until } = await begin("stubborn", ["--grace", "100ms"], script);
    await until("stdout", "key first");
    await mustPut(server(), "stubborn/KEY", "second");
    await until("stdout", "key second");
    process.kill(-(child.pid ?? 0), "SIGKILL");
    await finished;
  });

  it("--signal sends a signal instead of a restart", async () => {
    const script = `trap 'echo "got HUP"' HUP; echo ready; while :; do sleep 0.05; done`;
    const { child, until, texts } = await begin("signal", ["--signal", "hup"], script);
    await until("stdout", "ready");
    await mustPut(server(), "signal/KEY", "second");
    await until("stdout", "got HUP");
    expect(texts.stdout.split("ready")).to.have.lengthOf(2);
    process.kill(-(child.pid ?? 0), "SIGKILL");
  });

  it("the command stays while the vault is locked or its secret is missing, and is restarted afterwards", async () => {
    await mustPut(server(), "kept/key", "first");
    const args = ["run", "--set", "KEY=kept/key", ...quick, "--", "sh", "-c", printing];
    const started = start(server(), args);
    const { until, texts } = collectOutput(started);
    await until("stdout", "key first");
    await mustLock(server());
    await until("stderr", "cannot look for changes: the vault is locked");
    await mustUnlock(server());
    await send(server(), { method: "DELETE", path: "/v1/secrets/kept/key" });
    await until("stderr", "no secret at kept/key any more: the command keeps running");
    expect(texts.stdout.split("key")).to.have.lengthOf(2);
    await mustPut(server(), "kept/key", "second");
    await until("stdout", "key second");
    started.child.kill("SIGINT");
    started.child.kill("SIGTERM");
    await started.finished;
  });

  it("a command that ended while the vault was locked is started again once it can", async () => {
    const gate = join(temporaryDirectory(), "gate");
    const wait = `trap 'until [ -e ${gate} ]; do sleep 0.05; done; exit 0' TERM`;
    const script = `${wait}; echo "key $KEY"; while :; do sleep 0.05; done`;
    const { child, finished, until, texts } = await begin("between", ["--grace", "1d"], script);
    await until("stdout", "key first");
    await mustPut(server(), "between/KEY", "second");
    await until("stderr", "between/KEY changed: restarting the command");
    await mustLock(server());
    writeFileSync(gate, "");
    await until("stderr", "the vault is locked: unlock it with  strongroom unlock; the command waits for it");
    expect(texts.stdout).to.equal("key first\n");
    await mustUnlock(server());
    await until("stdout", "key second");
    child.kill("SIGTERM");
    await finished;
  });

  it("the command stays while the server restarts, and a change after that is noticed", async () => {
    const first = await startProcess();
    await mustInit(first);
    await mustPut(first, "app/KEY", "first");
    const started = start(first, ["run", "--prefix", "app", ...quick, "--", "sh", "-c", printing]);
    const { until, texts } = collectOutput(started);
    await until("stdout", "key first");
    await first.stop();
    await until("stderr", "cannot look for changes: ");
    const second = await startProcess([], { STRONGROOM_HOME: first.home });
    await until("stderr", "the vault is locked");
    await mustUnlock(second);
    await mustPut(second, "app/KEY", "second");
    await until("stdout", "key second");
    expect(texts.stdout.match(/key/g)).to.have.lengthOf(2);
    started.child.kill("SIGTERM");
    await started.finished;
  });

  onlyWith("STRONGROOM_STRANGER")("restarts the command once for changes that follow each other", async function () {
    const { child, finished, until, texts } = await begin("often", ["--interval", "1s"], printing);
    await until("stdout", "key first");
    let restarts = 0;
    for (let round = 0; round < 8; round++) {
      let [last, longest] = [performance.now(), 0];
      for (let n = 0; n < 40; n++) {
        await mustPut(server(), "often/KEY", `${round}-${n}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }
      await until("stdout", `key ${round}-39`);
      const before = restarts;
      restarts = texts.stderr.match(/restarting/g)?.length ?? 0;
      if (longest > 500) continue; // a busy machine: these changes did not follow each other
      expect(restarts - before).to.equal(1);
      child.kill("SIGTERM");
      return void (await finished);
    }
    needs(this, false, "a less busy machine"); // changes did not follow each other
  });

  it("run ends with the exit status of a command that ends by itself", async () => {
    const { finished } = await begin("ends", [], "exit 42");
    expect((await finished).code).to.equal(42);
  });

  it("a watch does not delay the idle lock", async () => {
    const before = (await mustStatus(server()))["lastActivity"];
    for (const path of ["/v1/secrets?background=true", "/v1/secrets/?limit=1&background=true"])
      expect((await send(server(), { path })).status).to.equal(200);
    expect((await mustStatus(server()))["lastActivity"]).to.equal(before);
    expect((await send(server(), { path: "/v1/secrets?background=no" })).status).to.equal(400);
  });

  for (const [args, words] of [
    [
      ["--signal", "HUP"],
      ["--signal", "has no effect without --watch"],
    ],
    [["--watch", "--signal", "nonsense"], ["must be a signal's name"]],
  ] as const)
    it(`run refuses ${args.join(" ")}`, async () => {
      mustRefuseWith(await strongroom(server(), ["run", "--set", "A=b", ...args, "--", "true"]), 2, ...words);
    });
});
