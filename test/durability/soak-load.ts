/** Load of the soak: clients at full speed on a fixed set of paths, and one that locks and unlocks each second. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerProcess } from "../../tools/rig/process.js";
import { mustLock, mustUnlock, type Send, secretTarget, send } from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";

const clients = 16;
const paths = 400;
/** From one lock to the next, in milliseconds, unless the unlock in between takes longer. */
const lockEvery = 1_000;
const mix = ["put", "put", "put", "get", "get", "get", "get", "get", "list", "delete"] as const;

export type Load = {
  readonly counts: { operations: number; locks: number };
  /** Resolves once every client has its last response. */
  end(): Promise<void>;
};

export function startLoad(server: ServerProcess): Load {
  const counts = { operations: 0, locks: 0 };
  let ending = false;
  const random = new Random(runSeed);
  const client = async () => {
    while (!ending) {
      await operate(server, random);
      counts.operations++;
    }
  };
  const locker = async () => {
    while (!ending) {
      const pause = sleep(lockEvery);
      await mustLock(server);
      await mustUnlock(server);
      counts.locks++;
      await pause;
    }
  };
  const all = Promise.all([...Array.from({ length: clients }, client), locker()]);
  all.catch(() => {}); // reported by end()
  return {
    counts,
    async end() {
      ending = true;
      await all;
    },
  };
}

/** A locked vault and a missing secret are expected here. */
async function operate(server: ServerProcess, random: Random): Promise<void> {
  const { status, text } = await send(server, randomRequest(random));
  if (![200, 403, 404].includes(status)) throw new Error(`unexpected status ${status}: ${text}`);
}

function randomRequest(random: Random): Send {
  const number = random.below(paths);
  const path = secretTarget(`soak/${number % 20}/${number}`);
  switch (random.pick(mix)) {
    case "put":
      return { method: "PUT", path, body: { value: "v".repeat(random.below(random.pick([100, 1_000, 50_000]))) } };
    case "get":
      return { path };
    case "list":
      return { path: `/v1/secrets?prefix=${encodeURIComponent(`soak/${number % 20}/`)}` };
    case "delete":
      return { method: "DELETE", path };
  }
}
