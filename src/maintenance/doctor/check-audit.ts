/** Check of the audit log: its files, its chain and, with the passphrase, the MACs of its checkpoints. */
import { join } from "node:path";
import { auditDirectory, fileNumberOf, signedOf } from "../../audit/format.js";
import { type AuditProblem, judgeCheckpoints, verifyLog } from "../../audit/verify.js";
import { entriesOf, examine, type Inspection, reading } from "./inspection.js";
import { reportStray } from "./stray-files.js";

/** `isOpened`: the vault's key is there. */
export async function examineAudit(inspection: Inspection, isOpened: boolean): Promise<void> {
  const directory = auditDirectory(inspection.home.path);
  if ((await examine(inspection, directory, "directory")) === null) return;
  for (const entry of await entriesOf(inspection, directory)) {
    const path = join(directory, entry.name);
    if (fileNumberOf(entry.name) === null) await reportStray(inspection, path, entry);
    else if ((await examine(inspection, path, "file")) === null) return;
  }
  const log = await reading(inspection, directory, () => verifyLog(directory));
  if (log === null) return;
  const judged = isOpened
    ? await judgeCheckpoints(log, (checkpoints) => inspection.keys.verifyCheckpoints(checkpoints.map(signedOf)))
    : null;
  for (const problem of [...log.problems, ...(judged?.problems ?? [])]) report(inspection, directory, problem);
}

function report(inspection: Inspection, directory: string, { file, message }: AuditProblem): void {
  const remedy = "find out who writes to the home; keep a copy of the audit directory, then move it away";
  inspection.report({ code: "audit-changed", path: join(directory, file), message, remedy, fix: null });
}
