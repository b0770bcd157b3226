/** OpenBao's own server: started in both of its modes; its transit keys beside ours on the port for Vault's clients. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { later, temporaryDirectory } from "../tools/rig/clean-up.js";
import { freePort } from "../tools/rig/postgres.js";
import { mustInit, mustStatus } from "../tools/rig/test-client.js";
import { type VaultPort, vault } from "../tools/rig/vault-client.js";
import { type Finding, found, type Outcome, ratios } from "./figures.js";
import { type Loaders, type Sample, takeSample, type Workload } from "./measure.js";
import { type Options, UsageError } from "./options.js";
import { totalCpu } from "./process-usage.js";
import { type StrongroomSubject, type Subject, startStrongroom } from "./subjects.js";
import { numberedPath } from "./vaults.js";

const connections = 64;
const perBatch = 1000;
const plaintext = randomBytes(200).toString("base64");

/** A server with the keys `aes` and `ed25519`. `ciphertext`: of `aes`. */
type Contender = { readonly subject: Subject; readonly ciphertext: string };

/** `perRequest`: inputs. */
type Use = {
  readonly name: string;
  readonly perRequest: number;
  readonly workload: (contender: Contender) => Workload;
};

const uses: readonly Use[] = [
  one("encrypt", "encrypt/aes", () => ({ plaintext })),
  one("decrypt", "decrypt/aes", ({ ciphertext }) => ({ ciphertext })),
  one("sign with Ed25519", "sign/ed25519", () => ({ input: plaintext })),
  {
    name: `encrypt in batches of ${perBatch}`,
    perRequest: perBatch,
    workload: () => {
      const body = { batch_input: Array.from({ length: perBatch }, () => ({ plaintext })) };
      return { connections: 4, requests: [post("encrypt/aes", body)] };
    },
  },
];

function one(name: string, path: string, makeBody: (contender: Contender) => object): Use {
  const workload = (contender: Contender) => ({ connections, requests: [post(path, makeBody(contender))] });
  return { name, perRequest: 1, workload };
}

function post(path: string, body: object) {
  return { method: "POST", path: `/v1/transit/${path}`, body: JSON.stringify(body) } as const;
}

/** @throws UsageError where there is no `bao` */
export async function* compareOpenBao(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const version = baoVersion(options.bao);
  if (version === null) throw new UsageError(`"${options.bao}" is no OpenBao: name its program with --bao FILE`);
  const [ours, theirs] = [await startOurs(options), await startBao(options.bao)];
  for (const use of uses) {
    const rounds: { readonly ours: Sample; readonly theirs: Sample }[] = [];
    for (let round = -1; round < options.rounds; round++) {
      const sample = ({ subject }: Contender, load: Workload) => takeSample(loaders, subject, load, options.seconds);
      const pair = {
        ours: await sample(ours, use.workload(ours)),
        theirs: await sample(theirs, use.workload(theirs)),
      };
      if (round >= 0) rounds.push(pair); // the first round is warm-up
    }
    const size = use.perRequest === 1 ? `${connections} connections` : "4 connections";
    yield { title: `${use.name}, 200 bytes, ${size}, beside ${version}`, findings: openBaoFindings(use, rounds) };
  }
}

/** Returns what the program says of itself; null when it is no OpenBao. */
export function baoVersion(program: string): string | null {
  const { stdout, status } = spawnSync(program, ["version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

/** An OpenBao with version 1 of its KV engine. `forKv`: the same requests, to that engine. */
type KvSubject = { readonly subject: Subject; readonly forKv: (workload: Workload) => Workload };

/** Starts OpenBao as a server of one node, with raft on disk and the certificate of the Strongroom beside it, and fills it. */
export async function startRaft(program: string, { server }: StrongroomSubject, secrets: number): Promise<KvSubject> {
  const [directory, vaultPort] = [temporaryDirectory(), await freePort()];
  const config = join(directory, "server.hcl");
  const pair = { cert: server.certificateFile, key: join(server.home, "tls", "key.pem") };
  writeFileSync(config, raftConfig(directory, vaultPort, await freePort(), pair));
  const env = { PATH: process.env["PATH"], HOME: directory };
  const child = startBaoProcess(program, ["server", `-config=${config}`], env);
  const { certificate } = server;
  const unsealed = { secret_shares: 1, secret_threshold: 1 };
  const made = await untilReady(() => must({ vaultPort, certificate, token: "" }, "PUT", "sys/init", unsealed));
  const port = { vaultPort, certificate, token: String(made.root_token) };
  await must(port, "PUT", "sys/unseal", { key: made.keys[0] });
  await untilReady(() => must(port, "POST", "sys/mounts/kv", { type: "kv", options: { version: "1" } }));
  for (let n = 0; n < secrets; n++) await must(port, "POST", `kv/${numberedPath(n)}`, { value: "v".repeat(200) });
  const url = `https://127.0.0.1:${vaultPort}`;
  const subject = { ...baoSubject(child, url, port.token), name: "OpenBao (raft, KV version 1)" };
  const toKv = (path: string) => path.replace("/v1/secrets/", "/v1/kv/");
  const forKv = (workload: Workload) => ({
    ...workload,
    requests: workload.requests.map((request) => ({ ...request, path: toKv(request.path) })),
  });
  return { subject, forKv };
}

function raftConfig(directory: string, port: number, clusterPort: number, pair: { cert: string; key: string }): string {
  return `storage "raft" {
  path = "${directory}"
  node_id = "benchmark"
}
listener "tcp" {
  address = "127.0.0.1:${port}"
  tls_cert_file = "${pair.cert}"
  tls_key_file = "${pair.key}"
}
api_addr = "https://127.0.0.1:${port}"
cluster_addr = "https://127.0.0.1:${clusterPort}"
`;
}

function startBaoProcess(program: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(program, args, { env, stdio: "ignore" });
  const ended = once(child, "exit");
  later(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return child;
}

function baoSubject(child: ChildProcess, url: string, token: string): Subject {
  const headers = { "X-Vault-Token": token };
  return { name: "OpenBao", url, pid: child.pid ?? 0, child, threads: { engine: [], pool: [] }, headers };
}

async function startOurs({ nodeFlags }: Options): Promise<Contender> {
  const home = join(temporaryDirectory(), "home");
  const native = await startStrongroom(home, { nodeFlags, environment: { STRONGROOM_VAULT_PORT: "0" } });
  const { server } = native;
  await mustInit(server);
  const { vaultPort } = await mustStatus(server);
  const port = { vaultPort: Number(vaultPort), certificate: server.certificate, token: server.token };
  return { ...(await withKeys(port)), subject: { ...native, url: `https://127.0.0.1:${vaultPort}` } };
}

/** Starts OpenBao in development mode, with TLS: it stores in memory and keeps no audit log. */
async function startBao(program: string): Promise<Contender> {
  const [directory, vaultPort, token] = [temporaryDirectory(), await freePort(), "root-of-the-benchmark"];
  const config = join(directory, "listener.hcl");
  writeFileSync(config, listenerOn(vaultPort, directory));
  const own = [`-dev-listen-address=127.0.0.1:${await freePort()}`, `-dev-tls-cert-dir=${directory}`, "-dev-tls"];
  const args = ["server", "-dev", ...own, `-config=${config}`, `-dev-root-token-id=${token}`, "-dev-no-store-token"];
  const child = startBaoProcess(program, args, { PATH: process.env["PATH"], HOME: directory });
  const port = await untilReady(async () => {
    const certificate = readFileSync(join(directory, "vault-ca.pem"), "utf8");
    const found = { vaultPort, certificate, token };
    await must(found, "POST", "sys/mounts/transit", { type: "transit" });
    return found;
  });
  return { ...(await withKeys(port)), subject: baoSubject(child, `https://127.0.0.1:${vaultPort}`, token) };
}

/** The listener of the development mode takes 1,000 strings in a body, which is half of a batch. */
function listenerOn(port: number, directory: string): string {
  return `listener "tcp" {
  address = "127.0.0.1:${port}"
  tls_cert_file = "${directory}/vault-cert.pem"
  tls_key_file = "${directory}/vault-key.pem"
  max_request_json_strings = 100000
}
`;
}

async function untilReady<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 600) throw error;
      await sleep(100);
    }
  }
}

async function withKeys(port: VaultPort): Promise<Pick<Contender, "ciphertext">> {
  await must(port, "POST", "transit/keys/aes", {});
  await must(port, "POST", "transit/keys/ed25519", { type: "ed25519" });
  const { data } = await must(port, "POST", "transit/encrypt/aes", { plaintext });
  return { ciphertext: data.ciphertext };
}

async function must(port: VaultPort, method: string, path: string, body: object) {
  const { status, json, text } = await vault(port, method, path, { body });
  if (status > 299) throw new Error(`${method} ${path}: ${status} ${text}`);
  return json;
}

function openBaoFindings(
  { perRequest }: Use,
  rounds: readonly { readonly ours: Sample; readonly theirs: Sample }[],
): Finding[] {
  const beside = (what: string, unit: "/s" | "µs", figure: (sample: Sample) => number) => {
    const [own, other] = [rounds.map((pair) => figure(pair.ours)), rounds.map((pair) => figure(pair.theirs))];
    return [
      found(`${what}, Strongroom`, own, unit),
      found(`${what}, OpenBao`, other, unit),
      found(`${what}, of OpenBao's`, ratios(own, other), "×"),
    ];
  };
  return [
    ...beside("rate", "/s", ({ perSecond }) => perSecond * perRequest),
    ...beside("CPU", "µs", ({ cpu }) => totalCpu(cpu) / perRequest),
    found(
      "failed",
      rounds.map(({ ours, theirs }) => ours.failed + theirs.failed),
      "",
    ),
  ];
}
