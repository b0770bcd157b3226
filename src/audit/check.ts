/** Check of the audit log by the server that writes it, in steps between which requests are served. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type CheckpointJudge, judgeCheckpoints, lengthOfLog, verifyLog } from "./verify.js";

/** `covered`: the last record that a checkpoint of this vault covers; 0: none. `problems`: the first ones, in words. */
export type AuditVerdict = {
  readonly records: number;
  readonly firstSeq: number;
  readonly covered: number;
  readonly problemCount: number;
  readonly problems: readonly string[];
};

/** Only `strongroom audit verify` checks all of a longer log: reading it would keep the main thread busy. */
const mostBytes = 16 * 2 ** 20;
const mostProblems = 10;
/** Lifetime of a cached verdict, in milliseconds. */
const keptMs = 30_000;

/** Returns a check of the log in `directory` that several callers share. `now`: in milliseconds. */
export function auditCheck(
  directory: string,
  judge: CheckpointJudge,
  now: () => number,
): () => Promise<AuditVerdict | null> {
  let last: { readonly until: number; readonly verdict: Promise<AuditVerdict | null> } | null = null;
  return () => {
    if (last !== null && now() < last.until) return last.verdict;
    const verdict = check(directory, judge);
    last = { until: now() + keptMs, verdict };
    verdict.catch(() => {
      last = null;
    });
    return verdict;
  };
}

/** Null when there is no record, or the log is too long. */
async function check(directory: string, judge: CheckpointJudge): Promise<AuditVerdict | null> {
  if ((await lengthOfLog(directory)) > mostBytes) return null;
  const log = await verifyLog(directory, null, () => nextTurn());
  if (log.firstSeq === null) return null;
  const judged = await judgeCheckpoints(log, judge);
  const problems = [...log.problems, ...judged.problems];
  return {
    records: log.records,
    firstSeq: log.firstSeq,
    covered: judged.covered,
    problemCount: problems.length,
    problems: problems.slice(0, mostProblems).map(({ file, message }) => `${file}: ${message}`),
  };
}
