/** The benchmark's command line. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";

export type Options = {
  readonly only: readonly string[] | null;
  readonly rounds: number;
  readonly seconds: number;
  readonly coldKeys: number;
  readonly million: boolean;
  readonly json: boolean;
  readonly markdown: boolean;
  /** File for the chart of the unlock storm. */
  readonly chart: string | null;
  /** Directory for CPU profiles of the server's main thread. */
  readonly profile: string | null;
};

export const usage = `usage: npm run bench -- [options]

  --only A,B       only these scenarios (--list names them)
  --rounds N       rounds, alternated; default 7
  --seconds S      seconds that each measurement lasts; default 2
  --cold-keys N    how many secrets "get-cold" goes round; default 50000, more than any cache here holds
  --million        adds 1,000,000 secrets to "growth" and "maintenance": fills the disk with 4 GiB and takes long
  --chart FILE     writes the unlock storm's latency over time as SVG
  --profile DIR    writes CPU profiles of the server's main thread
  --markdown       tables in Markdown
  --json           all samples and findings, for machines
`;

export class UsageError extends Error {}

const spelled = {
  only: { type: "string" },
  rounds: { type: "string", default: "7" },
  seconds: { type: "string", default: "2" },
  "cold-keys": { type: "string", default: "50000" },
  million: { type: "boolean", default: false },
  chart: { type: "string" },
  profile: { type: "string" },
  markdown: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  list: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Returns null when help is asked for. @throws UsageError */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parsed(args);
  if (values.help || values.list) return null;
  return {
    only: values.only?.split(",") ?? null,
    rounds: atLeast("--rounds", values.rounds, 1),
    seconds: atLeast("--seconds", values.seconds, 0.1),
    coldKeys: atLeast("--cold-keys", values["cold-keys"], 100),
    million: values.million,
    json: values.json,
    markdown: values.markdown,
    chart: values.chart === undefined ? null : resolve(values.chart),
    profile: values.profile === undefined ? null : resolve(values.profile),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: spelled });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function atLeast(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (!(value >= least)) throw new UsageError(`${flag} must be a number of at least ${least}`);
  return value;
}
