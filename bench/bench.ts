/** Entry point of `npm run bench`: what a get and a put cost, what an unlock storm does to others, what size costs. */
import { arch, cpus } from "node:os";
import { cleanUpMark, cleanUpTo } from "../tools/rig/clean-up.js";
import { measureBroker } from "./broker.js";
import { measureEvidence } from "./evidence.js";
import type { Outcome } from "./figures.js";
import { compareGets, comparePuts } from "./get-and-put.js";
import { type Loaders, startLoaders } from "./measure.js";
import { compareOpenBao } from "./openbao.js";
import { type Options, readOptions, runCommand, sharedUsage, show } from "./options.js";
import { measureScale } from "./scale.js";
import { measureStorm } from "./storm.js";
import { showTables } from "./tables.js";
import { measureTransit } from "./transit.js";
import { compareVaultPort } from "./vault-port.js";

const questions = {
  get: "a get, beside a bare node:https, one with a key thread, and an Express app that does the same work",
  vault: "a get on the port for Vault's clients, beside the native get",
  put: "a put, beside a bare durable loop, and one behind node:https",
  storm: "status and get while 16 clients unlock, beside a busy process",
  tables:
    "autocannon's own tables of get, put, and get in a storm, beside bare servers, and OpenBao where --bao names it",
  transit: "encrypt, decrypt and sign beside a get; gets while RSA keys are made",
  openbao: "uses of transit keys on the port for Vault's clients, beside OpenBao's own server (only if named)",
  broker: "gets beside 1,000 streams and 50 refreshes a second; a body of 1 GB beside a CONNECT tunnel (needs curl)",
  evidence: "gets beside an open review page, and beside a strongroom prove (Linux; root, or ptrace_scope 0)",
  scale: "start, list, backup, restore and doctor with 1,000 to 100,000 secrets (--million: 1,000,000)",
} as const;

type Question = keyof typeof questions;

const usage = `usage: npm run bench -- [options]

${Object.entries(questions)
  .map(([name, about]) => `  ${name.padEnd(17)}${about}\n`)
  .join("")}
${sharedUsage}  --bao FILE       the program of OpenBao, for "openbao" and "tables"; default: bao
  --million        "scale" with 1,000,000 secrets also: fills the disk with 4 GiB and takes long
`;

await runCommand(usage, async () => {
  const options = readOptions(process.argv.slice(2), Object.keys(questions), ["openbao"]);
  if (options === null) return void process.stdout.write(usage);
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${arch()}, Node ${process.version}`;
  if (!options.json) process.stdout.write(`${machine}\n`);
  await show(outcomes(options), options, { machine });
});

async function* outcomes(options: Options): AsyncGenerator<Outcome> {
  const loaders = await startLoaders();
  for (const question of options.only as readonly Question[]) {
    const mark = cleanUpMark();
    yield* answer(question, loaders, options);
    await cleanUpTo(mark);
  }
}

function answer(question: Question, loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  if (question === "get") return compareGets(loaders, options);
  if (question === "vault") return compareVaultPort(loaders, options);
  if (question === "openbao") return compareOpenBao(loaders, options);
  if (question === "put") return comparePuts(loaders, options);
  if (question === "tables") return showTables(loaders, options);
  if (question === "storm") return measureStorm(loaders, options);
  if (question === "transit") return measureTransit(loaders, options);
  if (question === "broker") return measureBroker(loaders, options);
  if (question === "evidence") return measureEvidence(loaders, options);
  return measureScale(options);
}
