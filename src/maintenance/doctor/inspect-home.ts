/**
 * Doctor: inspects a home, fixes what is safe to fix, and inspects again. Works only on the files, without a server or
 * beside a running one.
 */
import { lstat, stat } from "node:fs/promises";
import type { Bytes } from "../../../workers/protocol.js";
import { findWeakPlace, ownUid, weakPlaceText } from "../../client/ownership.js";
import { StartError, systemCode } from "../../errors.js";
import { diskSpaceRemedy, missingDiskSpace } from "../../files/disk-space.js";
import { missingAsNull } from "../../files/durable.js";
import { homeAt } from "../../files/home.js";
import { type Claim, claimVault, findHolder, type Holder } from "../../storage/files/claim.js";
import type { SecretStore } from "../../storage/secret-store.js";
import { Keys } from "../offline-keys.js";
import { examineCertificate, examineToken } from "./check-access.js";
import { examineAudit } from "./check-records.js";
import { examineStore } from "./check-store.js";
import { examineVaults, type VaultFacts } from "./check-vaults.js";
import type { Finding } from "./finding.js";
import { examine, type Inspection, type Progress, reading, reportTemps, reportWrongKind } from "./inspection.js";

export type DoctorOptions = {
  /** Fix what is safe to fix. */
  readonly fix: boolean;
  /** If given, every secret is opened with it. Wiped at the end. */
  readonly passphrase: Bytes | null;
  /** Holds the vault, instead of the home's files. */
  readonly store?: SecretStore | null;
  readonly onProgress: (done: number, total: number) => void;
};

type FixedFinding = Finding & { readonly did: string };

export type Diagnosis = VaultFacts & {
  readonly home: string;
  readonly vaultPath: string;
  /** The running server. */
  readonly server: Holder | null;
  /** The secrets of the current vault were opened. */
  readonly opened: boolean;
  /** Secrets that have expired, or will within 30 days; null unless the secrets were opened. It is no finding. */
  readonly expiry: Expiry | null;
  readonly fixed: readonly FixedFinding[];
  /** Remaining findings. */
  readonly findings: readonly Finding[];
};

type Expiry = { readonly expired: number; readonly within30Days: number };

type Seen = VaultFacts & { readonly expiries: readonly number[] } & { readonly findings: readonly Finding[] };

/** One fix can reveal the next finding. */
const maxRounds = 4;

/** @throws VaultError UNAUTHORIZED on a wrong passphrase; StartError (exit code 2) when --fix is not allowed. */
export async function runDoctor(path: string, options: DoctorOptions): Promise<Diagnosis> {
  const home = homeAt(path);
  const owner = await requireOwner(path, options.fix);
  const keys = new Keys(options.passphrase);
  const claim = options.fix ? await claimIfFree(home.vault) : null;
  try {
    const server = claim === null ? await findHolder(home.vault) : null;
    const { store = null } = options;
    const inspected = { home, owner, keys, now: Date.now(), served: server !== null || store !== null };
    const inspectNow = () => inspectReliably(inspected, options);
    const { seen: found, fixed } = await fixAndInspect(inspectNow, options.fix, claim !== null);
    const { expiries, ...seen } = found;
    const opened = seen.current !== null && keys.opened === seen.current;
    const expiry = opened ? countExpiries(expiries, inspected.now) : null;
    return { home: path, vaultPath: store?.vaultPath ?? home.vault, server, opened, expiry, fixed, ...seen };
  } finally {
    await keys.stop();
    await claim?.release();
  }
}

function countExpiries(expiries: readonly number[], now: number): Expiry {
  const within30Days = expiries.filter((time) => time > now && time <= now + 30 * 86_400_000).length;
  return { expired: expiries.filter((time) => time <= now).length, within30Days };
}

/** Root may inspect another user's home, but not fix it: what root writes belongs to root. */
async function requireOwner(path: string, fix: boolean): Promise<number | null> {
  const owner = ownUid === 0 ? ((await missingAsNull(stat(path)))?.uid ?? ownUid) : ownUid;
  if (!fix) return owner;
  if (owner !== ownUid)
    throw new StartError(`${path} belongs to user ${owner}: run strongroom doctor --fix as that user`, 2);
  const weak = await findWeakPlace(path);
  if (weak !== null) throw new StartError(weakPlaceText(path, weak), 2);
  return owner;
}

/** Returns null when a server holds it, or it is no directory. */
async function claimIfFree(vaultPath: string): Promise<Claim | null> {
  try {
    if (!(await lstat(vaultPath)).isDirectory()) return null; // never claim through a link
    return await claimVault(vaultPath);
  } catch (error) {
    if (error instanceof StartError || systemCode(error) !== undefined) return null; // served, or missing
    throw error;
  }
}

type Inspect = () => Promise<Seen>;

async function fixAndInspect(
  inspect: Inspect,
  fix: boolean,
  claimed: boolean,
): Promise<{ seen: Seen; fixed: FixedFinding[] }> {
  const fixed: FixedFinding[] = [];
  let seen = await inspect();
  for (let round = 0; fix && round < maxRounds; round++) {
    const now = await fixAll(seen.findings, claimed);
    if (now.length === 0) break;
    fixed.push(...now);
    seen = await inspect();
  }
  return { seen, fixed };
}

/** Modes first, and nothing else then: what others can still replace is not removed by its name. */
async function fixAll(all: readonly Finding[], claimed: boolean): Promise<FixedFinding[]> {
  const fixed: FixedFinding[] = [];
  const modes = all.filter(({ code, fix }) => code === "wrong-mode" && fix !== null);
  const foreign = all.filter(({ code }) => code === "foreign-owner").map(({ path }) => `${path}/`);
  const own = all.filter(({ path }) => !foreign.some((directory) => path.startsWith(directory)));
  for (const finding of modes.length > 0 ? modes : own) {
    const { fix } = finding;
    if (fix === null || !(claimed || fix.whileServed)) continue;
    if (await succeeds(fix.run())) fixed.push({ ...finding, did: fix.did });
  }
  return fixed;
}

/** Returns false when the system refuses the fix: the finding remains. */
async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    return false;
  }
}

type InspectedHome = Omit<Inspection, "report" | "expires" | "progress">;

/** Beside a server, only what two inspections see is a finding: files of writes in progress are gone at the second. */
async function inspectReliably(inspected: InspectedHome, options: DoctorOptions): Promise<Seen> {
  const first = await inspectOnce(inspected, options);
  if (!inspected.served || first.findings.length === 0) return first;
  const known = new Set(first.findings.map(findingKey));
  const second = await inspectOnce(inspected, options);
  return { ...second, findings: second.findings.filter((finding) => known.has(findingKey(finding))) };
}

function findingKey({ code, path }: Finding): string {
  return `${code} ${path}`;
}

async function inspectOnce(inspected: InspectedHome, { onProgress, store = null }: DoctorOptions): Promise<Seen> {
  const findings: Finding[] = [];
  const expiries: number[] = [];
  const inspection: Inspection = {
    ...inspected,
    report: (finding) => findings.push(finding),
    expires: (time) => expiries.push(time),
    progress: createProgress(onProgress),
  };
  const nothing: VaultFacts = { current: null, kept: [], secrets: 0 };
  const { path } = inspection.home;
  if ((await examine(inspection, path, "directory", true)) === null && store === null)
    return { ...nothing, expiries, findings };
  await examineDisk(inspection);
  await reportTemps(inspection, path);
  await examineToken(inspection);
  await examineCertificate(inspection);
  await examineSocket(inspection);
  const facts = store === null ? await examineVaults(inspection) : await examineStore(inspection, store);
  await examineAudit(inspection, facts.current !== null && inspection.keys.opened === facts.current);
  return { ...facts, expiries, findings };
}

async function examineDisk({ home: { path }, report }: Inspection): Promise<void> {
  const missing = await missingDiskSpace(path);
  if (missing === null) return;
  report({ code: "disk-full", path, message: `its disk has ${missing}`, remedy: diskSpaceRemedy, fix: null });
}

/** A start replaces a socket that no one listens on, and refuses anything else in its place. */
async function examineSocket(inspection: Inspection): Promise<void> {
  const path = inspection.home.socket;
  const found = await reading(inspection, path, () => lstat(path));
  if (found !== null && !found.isSocket()) reportWrongKind(inspection, path, found.isSymbolicLink(), "a socket");
}

function createProgress(onProgress: DoctorOptions["onProgress"]): Progress {
  let done = 0;
  let total = 0;
  return {
    expect: (steps) => {
      total += steps;
    },
    step: () => onProgress(++done, total),
  };
}
