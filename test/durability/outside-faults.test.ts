/** Failing system calls in a server process: clear errors, whole values, full recovery. */

import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { passphrase } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustStatus, send } from "../../tools/rig/test-client.js";
import { isMissing } from "../support/needs.js";
import { type Fault, whyNoStrace, withFault } from "../support/strace.js";
import {
  change,
  kill,
  mustBeClear,
  mustHold,
  mustSurviveRestart,
  readState,
  type State,
  tempFiles,
} from "./outside.js";

/** The expected result of a put over a secret, and of a delete, while every such call fails. */
const faults = [
  { call: "fsync", error: "EIO", puts: "refused", deletes: "refused" },
  { call: "/^rename", error: "ENOSPC", puts: "refused", deletes: "done" },
  { call: "openat", error: "EMFILE", puts: "refused", deletes: "refused" },
  { call: "/^unlink", error: "EIO", puts: "done", deletes: "refused" },
  { call: "/^mkdir", error: "ENOSPC", puts: "done", deletes: "done" },
  { call: "/^rmdir", error: "EIO", puts: "done", deletes: "done" },
] as const;
const statuses = { refused: 503, done: 200 } as const;

/** One thread for all file operations, since strace counts calls per thread. */
const oneThread = { UV_THREADPOOL_SIZE: "1" };

function start(more: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  return startProcess([], { ...oneThread, ...more });
}

/** Makes a change during the fault, checks its visible effect, and records the result. */
async function changeUnder(server: ServerProcess, fault: Fault, path: string, wanted: State, seen: Map<string, State>) {
  const before = await readState(server, path);
  const { result, hits } = await withFault(server.child.pid ?? 0, fault, async () => {
    const answer = await change(server, path, wanted);
    await mustStatus(server);
    return answer;
  });
  mustBeClear(result);
  const after = await readState(server, path);
  expect(after).to.be.oneOf(result.status === 200 ? [wanted] : [before, wanted]);
  if (hits === 0) expect(result.status, "no call failed").to.equal(200);
  if (!fault.call.includes("unlink")) expect(tempFiles(server)).to.deep.equal([]);
  seen.set(path, after);
  return { status: result.status, hits };
}

/** Forces an init during the fault; `next` is the new passphrase, or null when the old vault is still current. */
async function initUnder(server: ServerProcess, fault: Fault): Promise<{ next: string | null; hits: number }> {
  await mustPut(server, "a", "of the old vault");
  const next = `passphrase of call ${fault.when}`;
  const { result, hits } = await withFault(server.child.pid ?? 0, fault, async () => {
    const answer = await send(server, { method: "POST", path: "/v1/init", body: { passphrase: next, force: true } });
    await mustStatus(server);
    return answer;
  });
  mustBeClear(result);
  expect(await readState(server, "a")).to.equal(result.status === 200 ? null : "of the old vault");
  return { next: result.status === 200 ? next : null, hits };
}

/** While every such call fails; returns what is stored then. */
async function mustRecover(
  server: ServerProcess,
  fault: Fault,
  putStatus: number,
  deleteStatus: number,
): Promise<Map<string, State>> {
  await mustPut(server, "a/b", "old");
  await mustPut(server, "a/c/d", "old");
  const seen = new Map<string, State>();
  const over = await changeUnder(server, fault, "a/b", "new", seen);
  expect(over.status).to.equal(putStatus);
  const fresh = await changeUnder(server, fault, "new/directory/e", "new", seen);
  expect(fresh.status).to.equal(fault.call === "/^mkdir" ? 503 : putStatus);
  const removed = await changeUnder(server, fault, "a/c/d", null, seen);
  expect(removed.status).to.equal(deleteStatus);
  expect(over.hits + fresh.hits + removed.hits, "calls that failed").to.be.above(0);
  await mustPut(server, "afterwards", "stored");
  return seen.set("afterwards", "stored");
}

/** While one call after the other fails; restarts show what is stored, `seen` included. */
async function mustBeWhole(server: ServerProcess, fault: Fault, seen: Map<string, State>) {
  for (let k = 1, hits = 1; k <= 6 && hits > 0; k++) {
    const once = { ...fault, when: String(k) };
    const over = await changeUnder(server, once, "a/b", `value ${k}`, seen);
    const fresh = await changeUnder(server, once, `new-${k}/c/d`, "new", seen);
    await mustPut(server, `gone-${k}/c/d`, "old");
    const removed = await changeUnder(server, once, `gone-${k}/c/d`, null, seen);
    hits = over.hits + fresh.hits + removed.hits;
  }
  await kill(server);
  const again = await start({ STRONGROOM_HOME: server.home });
  await mustHold(again, seen);
  let current = passphrase;
  for (let k = 1, hits = 1; k <= 6 && hits > 0; k++) {
    const init = await initUnder(again, { ...fault, when: String(k) });
    current = init.next ?? current;
    hits = init.hits;
  }
  await mustPut(again, "a", "last");
  await mustSurviveRestart(again, new Map([["a", "last"]]), current);
}

describe("failing system calls", function () {
  this.timeout(180_000);
  if (isMissing(whyNoStrace())) return;

  for (const { puts, deletes, ...fault } of faults) {
    const name = `${fault.call.replace("/^", "")} (${fault.error})`;

    it(`puts are ${puts} and deletes ${deletes} while ${name} persists; one such error leaves each change whole or undone`, async () => {
      const server = await start();
      await mustInit(server);
      const seen = await mustRecover(server, fault, statuses[puts], statuses[deletes]);
      await mustBeWhole(server, fault, seen);
    });
  }

  it("a get gets 503 while openat fails with EMFILE, and returns the secret afterwards", async () => {
    const server = await start({ STRONGROOM_CACHE_BYTES: "0" }); // so that the get reads a file
    await mustInit(server);
    await mustPut(server, "a/b", "kept");
    const { result } = await withFault(server.child.pid ?? 0, { call: "openat", error: "EMFILE" }, async () => [
      await send(server, { path: "/v1/secrets/a/b" }),
      await send(server, { path: "/v1/secrets" }),
    ]);
    for (const { status, json, text } of result) expect(`${status} ${json["code"]}`, text).to.equal("503 UNAVAILABLE");
    expect((await mustGet(server, "a/b"))["value"]).to.equal("kept");
  });
});
