/**
 * Owns doctor: looks at a home, mends what is safe to fix, and looks again. It reads the files themselves, so that it
 * needs no server, and does not disturb one that runs.
 */
import { lstat, stat } from "node:fs/promises";
import type { Bytes } from "../../../workers/protocol.js";
import { StartError, systemCode } from "../../errors.js";
import { missingAsNull } from "../../files/durable.js";
import { homeAt } from "../../files/home.js";
import { type Claim, claimVault } from "../../storage/files/claim.js";
import { findHolder, type Holder } from "../../storage/files/claim-holder.js";
import { examineCertificate, examineToken } from "./check-access.js";
import { examineVaults, type VaultFacts } from "./check-generations.js";
import type { Finding } from "./finding.js";
import { examine, type Inspection, type Progress } from "./inspection.js";
import { Keys } from "./offline-keys.js";
import { reportTemps } from "./stray-files.js";

export type DoctorOptions = {
  /** Fix what is safe to fix. */
  readonly fix: boolean;
  /** With it every secret is opened; doctor wipes it. */
  readonly passphrase: Bytes | null;
  readonly onProgress: (done: number, total: number) => void;
};

export type FixedFinding = Finding & { readonly did: string };

export type Diagnosis = VaultFacts & {
  readonly home: string;
  readonly vaultPath: string;
  /** The server that ran meanwhile. */
  readonly server: Holder | null;
  /** Every secret of the vault in force was opened. */
  readonly opened: boolean;
  readonly fixed: readonly FixedFinding[];
  /** What remains. */
  readonly findings: readonly Finding[];
};

type Seen = VaultFacts & { readonly findings: readonly Finding[] };

/** Mending one thing can bring the next to light. */
const maxRounds = 4;

/** @throws VaultError UNAUTHORIZED when the passphrase is wrong; StartError, exit code 2, when --fix must not be used. */
export async function runDoctor(path: string, options: DoctorOptions): Promise<Diagnosis> {
  const home = homeAt(path);
  const owner = await ownerOf(path, options.fix);
  const keys = new Keys(options.passphrase);
  const claim = options.fix ? await claimIfFree(home.vault) : null;
  try {
    const server = claim === null ? await findHolder(home.vault) : null;
    const place = { home, owner, keys, now: Date.now(), served: server !== null };
    const lookNow = () => lookSurely(place, options);
    const { seen, fixed } = await fixAndLook(lookNow, options.fix, claim !== null);
    const opened = seen.inForce !== null && keys.opened === seen.inForce;
    return { home: path, vaultPath: home.vault, server, opened, fixed, ...seen };
  } finally {
    await keys.stop();
    await claim?.release();
  }
}

/** Root may look at what is another user's; what root writes there would belong to root. */
async function ownerOf(path: string, fix: boolean): Promise<number | null> {
  const me = process.getuid?.() ?? null;
  if (me !== 0) return me;
  const owner = (await missingAsNull(stat(path)))?.uid ?? me;
  if (owner === me || !fix) return owner;
  throw new StartError(`${path} belongs to user ${owner}: run strongroom doctor --fix as that user`, 2);
}

/** Null when a server holds it, or it is no directory. */
async function claimIfFree(vaultPath: string): Promise<Claim | null> {
  try {
    if (!(await lstat(vaultPath)).isDirectory()) return null; // a link would lead the claim elsewhere
    return await claimVault(vaultPath);
  } catch (error) {
    if (error instanceof StartError || systemCode(error) !== undefined) return null; // served, or not there at all
    throw error;
  }
}

type Look = () => Promise<Seen>;

async function fixAndLook(look: Look, fix: boolean, claimed: boolean): Promise<{ seen: Seen; fixed: FixedFinding[] }> {
  const fixed: FixedFinding[] = [];
  let seen = await look();
  for (let round = 0; fix && round < maxRounds; round++) {
    const now = await fixAll(seen.findings, claimed);
    if (now.length === 0) break;
    fixed.push(...now);
    seen = await look();
  }
  return { seen, fixed };
}

async function fixAll(findings: readonly Finding[], claimed: boolean): Promise<FixedFinding[]> {
  const fixed: FixedFinding[] = [];
  for (const finding of findings) {
    const { fix } = finding;
    if (fix === null || !(claimed || fix.whileServed)) continue;
    if (await succeeds(fix.run())) fixed.push({ ...finding, did: fix.did });
  }
  return fixed;
}

/** What the system refuses stays a finding. */
async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    return false;
  }
}

type Place = Omit<Inspection, "report" | "progress">;

/** Beside a server, only what two looks have seen is a finding: what it is doing just now is gone at the second. */
async function lookSurely(place: Place, { onProgress }: DoctorOptions): Promise<Seen> {
  const first = await look(place, onProgress);
  if (!place.served || first.findings.length === 0) return first;
  const known = new Set(first.findings.map(keyOf));
  const second = await look(place, onProgress);
  return { ...second, findings: second.findings.filter((finding) => known.has(keyOf(finding))) };
}

function keyOf({ code, path }: Finding): string {
  return `${code} ${path}`;
}

async function look(place: Place, onProgress: DoctorOptions["onProgress"]): Promise<Seen> {
  const findings: Finding[] = [];
  const inspection: Inspection = {
    ...place,
    report: (finding) => findings.push(finding),
    progress: progressOf(onProgress),
  };
  const nothing: VaultFacts = { inForce: null, kept: [], secrets: 0 };
  const { path } = inspection.home;
  if ((await examine(inspection, path, "directory", true)) === null) return { ...nothing, findings };
  await reportTemps(inspection, path);
  await examineToken(inspection);
  await examineCertificate(inspection);
  return { ...(await examineVaults(inspection)), findings };
}

function progressOf(onProgress: DoctorOptions["onProgress"]): Progress {
  let done = 0;
  let total = 0;
  return {
    expect: (steps) => {
      total += steps;
    },
    step: () => onProgress(++done, total),
  };
}
