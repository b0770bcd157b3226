/**
 * Uses of transit keys beside a get of the same size on the same server, batches beside single requests, and gets while the
 * server makes RSA keys, beside a process that keeps one CPU busy, as making a key does.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryDirectory } from "../tools/rig/clean-up.js";
import { mustInit, mustPut, mustSucceed, send } from "../tools/rig/test-client.js";
import { type Finding, found, type Outcome, ratios } from "./figures.js";
import {
  type Loaders,
  pacedStream,
  type Sample,
  sendLoad,
  sendPaced,
  settle,
  takeSample,
  type Workload,
} from "./measure.js";
import type { Options } from "./options.js";
import { totalCpu } from "./process-usage.js";
import type { PacedReport } from "./programs/paced-load.js";
import { type StrongroomSubject, startHog, startStrongroom } from "./subjects.js";
import { numberedPath } from "./vaults.js";
import { getSecrets, get as getWorkload } from "./workloads.js";

const connections = 64;
const perBatch = 1000;
const plaintext = randomBytes(200).toString("base64");

type Named = { readonly name: string; readonly workload: Workload };

export async function* measureTransit(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const subject = await startStrongroom(join(temporaryDirectory(), "home"), { nodeFlags: options.nodeFlags });
  await mustInit(subject.server);
  for (let n = 0; n < getSecrets; n++) await mustPut(subject.server, numberedPath(n), "v".repeat(200));
  const single = await singleUses(subject);
  const samples = new Map<string, Sample[]>();
  const named = [{ name: "get", workload: getWorkload(connections) }, ...single, batchedEncrypt(single)];
  for (let round = -1; round < options.rounds; round++) {
    for (const { name, workload } of named) {
      const sample = await takeSample(loaders, subject, { ...workload, perSecond: undefined }, options.seconds);
      if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), sample]); // the first round is warm-up
    }
  }
  yield { title: `uses of transit keys, 200 bytes, ${connections} connections`, findings: usesFound(samples) };
  yield {
    title: "get while the server makes RSA keys, 200 a second",
    findings: await measureRsa(loaders, subject, options),
  };
}

async function singleUses({ server }: StrongroomSubject): Promise<readonly Named[]> {
  const post = async (path: string, body: object) =>
    mustSucceed(await send(server, { method: "POST", path: `/v1/transit/${path}`, body }));
  await post("keys/bench/aes", {});
  await post("keys/bench/ed25519", { type: "ed25519" });
  const { ciphertext } = await post("encrypt/bench/aes", { plaintext });
  const one = (name: string, path: string, body: object): Named => {
    const request = { method: "POST", path: `/v1/transit/${path}`, body: JSON.stringify(body) } as const;
    return { name, workload: { connections, requests: [request] } };
  };
  return [
    one("encrypt", "encrypt/bench/aes", { plaintext }),
    one("decrypt", "decrypt/bench/aes", { ciphertext }),
    one("sign with Ed25519", "sign/bench/ed25519", { input: plaintext }),
  ];
}

function batchedEncrypt([encrypt]: readonly Named[]): Named {
  const [request] = encrypt?.workload.requests ?? [];
  if (request === undefined) throw new Error("there is nothing to make a batch of");
  const body = JSON.stringify({ batch: Array.from({ length: perBatch }, () => ({ plaintext })) });
  return { name: `encrypt in batches of ${perBatch}`, workload: { connections: 4, requests: [{ ...request, body }] } };
}

function usesFound(samples: ReadonlyMap<string, readonly Sample[]>): Finding[] {
  const of = (name: string, figure: (sample: Sample) => number) => (samples.get(name) ?? []).map(figure);
  const inputs = (name: string) => (name.includes("batches") ? perBatch : 1);
  const rate = (name: string) => of(name, ({ perSecond }) => perSecond * inputs(name));
  const cpu = (name: string) => of(name, (sample) => totalCpu(sample.cpu) / inputs(name));
  return [...samples.keys()].flatMap((name) => {
    const beside = name.includes("batches") ? "encrypt" : "get";
    const own = [found(`${name}: rate`, rate(name), "/s"), found(`${name}: CPU`, cpu(name), "µs")];
    const failed = found(
      `${name}: failed`,
      of(name, (sample) => sample.failed),
      "",
    );
    if (name === "get") return [...own, failed];
    return [
      ...own,
      found(`${name}: rate, of ${beside}'s`, ratios(rate(name), rate(beside)), "×"),
      found(`${name}: CPU, of ${beside}'s`, ratios(cpu(name), cpu(beside)), "×"),
      failed,
    ];
  });
}

/** Four clients ask for RSA keys without a pause; keys are made one at a time. */
async function measureRsa(
  { loader, pacer }: Loaders,
  subject: StrongroomSubject,
  options: Options,
): Promise<Finding[]> {
  const seconds = Math.max(5, options.seconds);
  const load = { url: subject.url, paced: [pacedStream(subject, getWorkload(8), 200)], seconds };
  const hog = await startHog();
  const rounds: { readonly busy: PacedReport; readonly making: PacedReport }[] = [];
  for (let round = -1; round < options.rounds; round++) {
    hog.go();
    const [busy] = await sendPaced(pacer, load);
    hog.halt();
    const creating = sendLoad(loader, subject, rsaKeys(round), seconds + 2); // longer than the gets
    await sleep(1000);
    const [making] = await sendPaced(pacer, load);
    await creating;
    await settle(subject);
    if (round >= 0 && busy && making) rounds.push({ busy, making });
  }
  return (["p50", "p99", "p999", "max"] as const).flatMap((figure) => {
    const [making, busy] = [rounds.map((round) => round.making[figure]), rounds.map((round) => round.busy[figure])];
    return [
      found(`${figure} while keys are made`, making, "ms"),
      found(`${figure}, of that beside a busy process`, ratios(making, busy), "×"),
    ];
  });
}

function rsaKeys(round: number): Workload {
  const body = JSON.stringify({ type: "rsa-4096" });
  const requests = Array.from({ length: 1000 }, (_, n) => {
    return { method: "POST", path: `/v1/transit/keys/rsa/${round}-${n}`, body } as const;
  });
  return { connections: 4, requests };
}
