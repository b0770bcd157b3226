/** Checks after a kill or a power cut: the restarted vault over HTTP, and the home on disk. */
import { readdirSync } from "node:fs";
import { expect } from "chai";
import type { TestServer } from "../../tools/rig/server.js";
import { type Json, mustRefuse, mustStatus, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { descriptionOf, type Subject } from "./writers.js";

/** Checks a restarted server against the ledger, which then records what was found as certain. */
export async function inspect(server: TestServer, subject: Subject): Promise<void> {
  expect(tempFiles(server.home).join("\n"), "temp files").to.equal("");
  const { initialized, locked, secretCount } = await mustStatus(server);
  expect({ initialized, locked }).to.deep.equal({ initialized: true, locked: true });
  subject.ledger.crash(await unlock(server, subject));
  const found = await readAll(server);
  expect(subject.ledger.violations(found).join("\n")).to.equal("");
  expect(secretCount, "secretCount").to.equal(found.size);
  await expectAbsent(server, subject, found);
  subject.ledger.settle(found);
}

function tempFiles(home: string): string[] {
  return readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => name.includes(".tmp-"));
}

/** The passphrase that opens the vault shows whether an unacknowledged forced init happened. */
async function unlock(server: TestServer, subject: Subject): Promise<boolean> {
  const { nextPassphrase } = subject;
  subject.nextPassphrase = null;
  if (nextPassphrase !== null) {
    const body = { passphrase: nextPassphrase };
    const answer = await send(server, { method: "POST", path: "/v1/unlock", body });
    if (answer.status === 200) {
      subject.passphrase = nextPassphrase;
      return true;
    }
    mustRefuse(answer, 401, "UNAUTHORIZED");
  }
  await mustUnlock(server, subject.passphrase);
  return false;
}

type Listed = { readonly path: string; readonly metadata: { readonly description?: string } };

async function readAll(server: TestServer): Promise<Map<string, string>> {
  const list = mustSucceed(await send(server, { path: "/v1/secrets" }));
  expect(Object.keys(list), "a list without damage").to.deep.equal(["entries"]);
  const found = new Map<string, string>();
  const entries = list["entries"] as Listed[];
  const secrets = await getAll(
    server,
    entries.map(({ path }) => path),
  );
  for (const [i, { path, metadata }] of entries.entries()) {
    const text = String(secrets[i]?.["value"]);
    expect(secrets[i]?.["metadata"]).to.deep.equal({ description: descriptionOf(text) });
    expect(metadata).to.deep.equal({ description: descriptionOf(text) });
    found.set(path, text);
  }
  return found;
}

/** Secrets that the list omits must be missing for a get as well. */
async function expectAbsent(
  server: TestServer,
  { ledger }: Subject,
  found: ReadonlyMap<string, string>,
): Promise<void> {
  const absent = [...ledger.paths()].filter((path) => !found.has(path));
  for (const { code } of await getAll(server, absent)) expect(code).to.equal("NOT_FOUND");
}

const getsAtOnce = 100; // of large secrets, within the limit of a batch

async function getAll(server: TestServer, paths: readonly string[]): Promise<Json[]> {
  const results: Json[] = [];
  for (let at = 0; at < paths.length; at += getsAtOnce) {
    const operations = paths.slice(at, at + getsAtOnce).map((get) => ({ get }));
    const answer = mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
    results.push(...(answer["results"] as Json[]));
  }
  return results;
}
