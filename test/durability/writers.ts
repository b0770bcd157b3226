/** Writers beside kills and power cuts: each puts and deletes at random on its own paths, in shared directories. */
import type { ServerProcess } from "../../tools/rig/process.js";
import { type ApiResponse, mustSucceed, type Send, secretTarget, send } from "../../tools/rig/test-client.js";
import type { Random } from "../support/random.js";
import { Ledger, type TextChange } from "./ledger.js";

const pathsPerWriter = 20;
const deleteShare = 0.35;
const initShare = 1 / 500;
const batchShare = 0.1;
const pathsOfBatches = 100;

/** Knowledge of the vault across restarts. */
export class Subject {
  readonly ledger = new Ledger();
  /** The vault is initialised. */
  started = false;
  passphrase = "the first";
  /** The new passphrase of a running forced init. */
  nextPassphrase: string | null = null;
  /** Acknowledged puts and deletes. */
  acknowledged = 0;
  inits = 0;
  kills = 0;
  /** When true, each writer ends after its current operation. */
  resting = false;
  readonly #longest: number;
  readonly #singlesOnly: boolean;
  #texts = 0;

  /** `longest`: characters of a value. `singlesOnly`: puts and deletes alone, no batches and no forced inits. */
  constructor({ longest = 200_000, singlesOnly = false } = {}) {
    this.#longest = longest;
    this.#singlesOnly = singlesOnly;
  }

  /** Whether the next operation is one that has this share of all; false with `singlesOnly`. */
  isNext(share: number, random: Random): boolean {
    return !this.#singlesOnly && random.chance(share);
  }

  /** A unique value, mostly short, sometimes many blocks long. */
  newText(path: string, random: Random, most = this.#longest): string {
    const longest = Math.min(most, random.pick([0, 10, 100, 100, 1_000, 5_000, 20_000, 200_000]));
    const filler = String.fromCharCode(97 + random.below(26)).repeat(random.below(longest + 1));
    return `${this.#texts++} ${path} ${filler}`;
  }
}

/** The server was killed; unacknowledged operations stay open in the ledger. */
class Killed extends Error {}

/** Works until the server is killed, or until all rest. @throws Error on a response that the ledger does not allow. */
export function write(server: ServerProcess, subject: Subject, writer: number, random: Random): Promise<void> {
  return untilKilled(async () => {
    while (!subject.resting) await step(server, subject, writer, random);
  });
}

export async function untilKilled(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
}

async function step(server: ServerProcess, subject: Subject, writer: number, random: Random): Promise<void> {
  const path = pathOf(writer, random.below(pathsPerWriter));
  if (subject.isNext(initShare, random) && !subject.ledger.initUnderWay) await forceInit(server, subject);
  else if (subject.isNext(batchShare, random)) await batch(server, subject, writer, random);
  else if (random.chance(deleteShare)) await remove(server, subject, path);
  else await put(server, subject, path, subject.newText(path, random));
}

/** In lasting directories, alone in temporary directories, and below another secret. */
function pathOf(writer: number, number: number): string {
  const name = `w${writer}-${number}`;
  switch (number % 5) {
    case 0:
      return name;
    case 1:
      return `w${writer}-${number - 1}/under-a-secret`;
    case 2:
      return `shared/${number % 4}/${name}`;
    case 3:
      return `alone/${name}/deep/down/here`;
    default:
      return `shared/${number % 4}/few/${writer % 2}/${name}`;
  }
}

/** Metadata and value are sealed apart, so each names its put. */
export function descriptionOf(text: string): string {
  return text.slice(0, text.lastIndexOf(" "));
}

async function put(server: ServerProcess, subject: Subject, path: string, text: string): Promise<void> {
  const operation = subject.ledger.begin(path, text);
  const body = { value: text, description: descriptionOf(text) };
  mustSucceed(await answerOf(server, { method: "PUT", path: secretTarget(path), body }));
  subject.ledger.acknowledge(operation);
  subject.acknowledged++;
}

async function remove(server: ServerProcess, subject: Subject, path: string): Promise<void> {
  const { ledger } = subject;
  const before = ledger.mayHold(path);
  const operation = ledger.begin(path, null);
  const answer = await answerOf(server, { method: "DELETE", path: secretTarget(path) });
  const missed = answer.status === 404 && (before.nothing || ledger.mayHold(path).nothing);
  ledger.acknowledge(operation);
  if (missed) return;
  mustSucceed(answer);
  if (!before.something) throw new Error(`a delete of ${path} succeeded where no secret was`);
  subject.acknowledged++;
}

type Operation = { readonly operation: object; readonly changes: readonly TextChange[] };

/** Puts, deletes and moves from 2 to 100 of the writer's own secrets at once. */
async function batch(server: ServerProcess, subject: Subject, writer: number, random: Random): Promise<void> {
  const { ledger } = subject;
  const operations = batchOperations(subject, writer, random);
  const open = ledger.beginBatch(operations.flatMap(({ changes }) => changes));
  const body = { operations: operations.map(({ operation }) => operation) };
  const answer = await answerOf(server, { method: "POST", path: "/v1/batch", body });
  if (answer.status === 404 && (open.crossedInit || ledger.initUnderWay)) return ledger.refuse(open); // its secrets are gone
  mustSucceed(answer);
  ledger.acknowledge(open);
  subject.acknowledged += open.changes.length;
}

function batchOperations(subject: Subject, writer: number, random: Random): Operation[] {
  const size = 2 + random.below(pathsOfBatches - 1);
  const first = random.below(pathsOfBatches);
  const paths = Array.from({ length: size }, (_, n) => pathOf(writer, (first + 7 * n) % pathsOfBatches));
  const operations: Operation[] = [];
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    const text = subject.ledger.certainText(path);
    const to = text !== null && random.chance(0.3) ? paths.pop() : undefined;
    if (to !== undefined) operations.push(moveOf(path, to, text));
    else if (text !== null && random.chance(deleteShare)) operations.push(deleteOf(path));
    else operations.push(putOf(path, subject.newText(path, random, 5_000)));
  }
  return operations;
}

function putOf(put: string, text: string): Operation {
  return { operation: { put, value: text, description: descriptionOf(text) }, changes: [{ path: put, text }] };
}

function deleteOf(path: string): Operation {
  return { operation: { delete: path }, changes: [{ path, text: null }] };
}

function moveOf(path: string, to: string, text: string | null): Operation {
  const changes = [
    { path, text: null },
    { path: to, text },
  ];
  return { operation: { move: path, to }, changes };
}

export async function forceInit(server: ServerProcess, subject: Subject): Promise<void> {
  subject.nextPassphrase = `number ${++subject.inits}`;
  subject.ledger.beginInit();
  const body = { passphrase: subject.nextPassphrase, force: true };
  mustSucceed(await answerOf(server, { method: "POST", path: "/v1/init", body }));
  subject.ledger.acknowledgeInit();
  subject.passphrase = subject.nextPassphrase;
  subject.nextPassphrase = null;
}

async function answerOf(server: ServerProcess, request: Send): Promise<ApiResponse> {
  try {
    return await send(server, request);
  } catch (error) {
    throw server.child.killed ? new Killed() : error;
  }
}
