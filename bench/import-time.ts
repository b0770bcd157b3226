/**
 * Entry point of `npm run bench:import`: the time of `strongroom import` for 10,000 secrets, as a whole process, and of
 * the same puts over 16 plain connections. The two alternate on one server; the result is the ratio of each round.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryDirectory } from "../test/support/clean-up.js";
import { environment, mainFile, node, type ServerProcess, startProcess } from "../test/support/process.js";
import { mustInit, mustStatus } from "../test/support/test-client.js";
import { cleaningUp } from "./run-scenarios.js";
import { ratios, spreadOf } from "./statistics.js";

const entries = Number(process.env["STRONGROOM_ENTRIES"] ?? 10_000);
const rounds = Number(process.env["STRONGROOM_ROUNDS"] ?? 5);
const barePuts = fileURLToPath(new URL("./programs/bare-puts.js", import.meta.url));

await cleaningUp(async () => {
  const server = await startProcess([], { STRONGROOM_IDLE_TIMEOUT_MS: "0" });
  await mustInit(server);
  const file = makeEntries();
  const imports: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const turns = [
      async () => void imports.push(await timeImport(server, file, `imported-${round}/`)),
      async () => void bare.push(await timeBarePuts(server, file, `bare-${round}/`)),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    say(`round ${round + 1}`, imports.slice(-1), bare.slice(-1));
  }
  const { secretCount } = await mustStatus(server);
  if (secretCount !== 2 * rounds * entries) throw new Error(`the vault has ${String(secretCount)} secrets`);
  say("median", imports, bare);
});

function makeEntries(): string {
  const file = join(temporaryDirectory(), "entries.json");
  const secrets = Array.from({ length: entries }, (_, i) => {
    return { path: `team-${i % 50}/service-${i}/password`, value: `value ${i} `.repeat(4), type: "password" };
  });
  writeFileSync(file, JSON.stringify({ format: "strongroom-export", version: 1, secrets }));
  return file;
}

async function timeImport(server: ServerProcess, file: string, prefix: string): Promise<number> {
  const began = performance.now();
  const args = ["import", "--format", "json", "--prefix", prefix, file];
  await mustRun([mainFile, ...args], { STRONGROOM_HOME: server.home });
  return performance.now() - began;
}

async function timeBarePuts(server: ServerProcess, file: string, prefix: string): Promise<number> {
  const settings = { BENCH_ENTRIES: file, BENCH_PREFIX: prefix, BENCH_PORT: String(server.port) };
  const credentials = { BENCH_CERT: server.certificateFile, BENCH_TOKEN: server.token };
  return Number(await mustRun([barePuts], { ...settings, ...credentials }));
}

async function mustRun(args: readonly string[], settings: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(node, args, { env: environment(settings), stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${String(code)}`);
  return output;
}

function say(what: string, imports: readonly number[], bare: readonly number[]): void {
  const ratio = spreadOf(ratios(imports, bare));
  const seconds = (values: readonly number[]) => (spreadOf(values).median / 1000).toFixed(2);
  const range = imports.length > 1 ? ` (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})` : "";
  process.stdout.write(
    `${what}: ${entries} secrets imported in ${seconds(imports)} s, bare puts ${seconds(bare)} s: ` +
      `${ratio.median.toFixed(2)} times${range}\n`,
  );
}
