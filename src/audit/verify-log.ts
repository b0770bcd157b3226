/** Verification of a home's audit log: its files, and the MACs of its checkpoints where the key is at hand. */
import { join } from "node:path";
import type { CheckpointVerdict } from "../../workers/protocol.js";
import { systemCode } from "../errors.js";
import { readFileBytes, systemFiles } from "../files/durable.js";
import { type Checkpoint, fileNameOf, type LogHead, longestFile, maxCheckpoints } from "./audit-format.js";
import { fileNumbers } from "./log-files.js";
import { type AuditProblem, LogVerifier, type VerifiedLog } from "./log-verifier.js";

/** Attempts while a server removes the oldest file. */
const maxAttempts = 3;

export async function verifyLog(directory: string, head: LogHead | null = null): Promise<VerifiedLog> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await verifyOnce(directory, head);
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
    }
  }
}

async function verifyOnce(directory: string, head: LogHead | null): Promise<VerifiedLog> {
  const verifier = new LogVerifier(head);
  for (const file of await fileNumbers(systemFiles, directory)) {
    const path = join(directory, fileNameOf(file));
    const bytes = await readFileBytes(systemFiles, path, longestFile);
    if (bytes === null) throw Object.assign(new Error(`${path} is gone`), { code: "ENOENT", path });
    verifier.add(file, bytes);
  }
  return verifier.end();
}

/** Checks the MACs of checkpoints. */
export type Judge = (checkpoints: readonly Checkpoint[]) => Promise<readonly CheckpointVerdict[]>;

/** `covered`: the last record that a checkpoint of the vault's key covers; 0: none. */
export type JudgedLog = { readonly problems: readonly AuditProblem[]; readonly covered: number };

/**
 * Judges the checkpoints' MACs. One under an unknown key, made before a rotation of the master key or in an earlier vault of
 * this home, is covered by a later one under the vault's key, which stands for the whole chain before it. After the last of
 * those, an unknown key is a problem.
 */
export async function judgeCheckpoints({ checkpoints }: VerifiedLog, judge: Judge): Promise<JudgedLog> {
  const verdicts: CheckpointVerdict[] = [];
  for (let from = 0; from < checkpoints.length; from += maxCheckpoints)
    verdicts.push(...(await judge(checkpoints.slice(from, from + maxCheckpoints))));
  const last = verdicts.lastIndexOf("valid");
  const problems = checkpoints.flatMap(({ file, seq }, i): AuditProblem[] => {
    if (verdicts[i] === "wrong")
      return [problemOf(file, `${forged} ${seq} is not the vault's: the log was changed before it`)];
    if (verdicts[i] !== "unknown" || i < last) return [];
    return [problemOf(file, `${forged} ${seq} was made under another key, and none of the vault's follows`)];
  });
  return { problems, covered: checkpoints[last]?.seq ?? 0 };
}

const forged = "the checkpoint in record";

function problemOf(file: string, message: string): AuditProblem {
  return { code: "checkpoint", file, message };
}
