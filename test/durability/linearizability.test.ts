/** Linearizability of a secret: one order of operations explains what eight concurrent clients saw. */
import { expect } from "chai";
import { startProcess } from "../support/process.js";
import { Random, runSeed } from "../support/random.js";
import type { TestServer } from "../support/server.js";
import { mustInit, mustRefuse, mustSucceed, secretTarget, send } from "../support/test-client.js";
import { type Event, isLinearizable, type Timed } from "./register.js";

const clients = 8;
const pathsAtOnce = 3;

/** Short in the normal suite; 10,000 in the long form. */
const histories = Number(process.env["STRONGROOM_HISTORIES"] ?? 300);
const tellEvery = 1_000;

describe("concurrent clients", function () {
  this.timeout(0);

  it(`see one order of operations on each path (${histories} histories of ${clients} clients)`, async () => {
    const server = await startProcess();
    await mustInit(server);
    const numbers = Array.from({ length: histories }, (_, n) => n).values();
    const lane = async () => {
      for (const n of numbers) {
        await checkPath(server, n);
        if ((n + 1) % tellEvery === 0) process.stdout.write(`      ${n + 1} histories, 0 violations\n`);
      }
    };
    await Promise.all(Array.from({ length: pathsAtOnce }, lane));
  });
});

async function checkPath(server: TestServer, n: number): Promise<void> {
  const path = `register/${n % 100}/${n}`;
  const random = new Random(runSeed + n);
  const scripts = Array.from({ length: clients }, () => new Random(random.below(2 ** 32)));
  const seen = await Promise.all(scripts.map((script, client) => play(server, path, client, script)));
  const last = await timed(() => get(server, path));
  const events = [...seen.flat(), last];
  const told = `STRONGROOM_SEED=${runSeed}, ${path}: ${JSON.stringify(events)}`;
  expect(isLinearizable(events), told).to.equal(true);
}

/** Two or three operations in sequence. */
async function play(server: TestServer, path: string, client: number, random: Random): Promise<Event[]> {
  const events: Event[] = [];
  for (let n = 2 + random.below(2); n > 0; n--) {
    const act = random.pick([get, get, remove, put, put]);
    events.push(await timed(() => act(server, path, `client ${client}, ${n} to go`)));
  }
  return events;
}

type Untimed<E> = E extends Timed ? Omit<E, keyof Timed> : never;

async function timed(act: () => Promise<Untimed<Event>>): Promise<Event> {
  const call = performance.now();
  const event = await act();
  return { ...event, call, return: performance.now() };
}

async function put(server: TestServer, path: string, value: string): Promise<Untimed<Event>> {
  mustSucceed(await send(server, { method: "PUT", path: secretTarget(path), body: { value } }));
  return { do: "put", value };
}

async function get(server: TestServer, path: string): Promise<Untimed<Event>> {
  const answer = await send(server, { path: secretTarget(path) });
  if (answer.status === 200) return { do: "get", value: String(answer.json["value"]) };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "get", value: null };
}

async function remove(server: TestServer, path: string): Promise<Untimed<Event>> {
  const answer = await send(server, { method: "DELETE", path: secretTarget(path) });
  if (answer.status === 200) return { do: "delete", found: true };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "delete", found: false };
}
