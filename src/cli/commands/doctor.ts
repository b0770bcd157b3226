/** `strongroom doctor`: flags, passphrase, and printing of the findings. */
import type { Command } from "commander";
import type { VaultStatus } from "../../client/client.js";
import { isStoreUrl } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { engineFor } from "../../engines/engines.js";
import { VaultError } from "../../errors.js";
import type { Finding } from "../../maintenance/doctor/finding.js";
import { type Diagnosis, type DoctorOptions, runDoctor } from "../../maintenance/doctor/inspect-home.js";
import { type StoreFlags, storeSettings, withStore } from "../kit/args/settings-flags.js";
import { withClient, withHome } from "../kit/connection/server.js";
import { CommandFailure, exitCodes, failureOfVault } from "../kit/errors.js";
import type { Bytes, Io } from "../kit/io.js";
import { progressBar } from "../kit/output/progress.js";
import {
  certificateEndText,
  certificateRemedy,
  counted,
  expiringText,
  type OutputFlags,
  painter,
  printable,
  printJson,
  printRows,
  withHints,
  withOutput,
} from "../kit/output.js";
import { type OpenFlags, opensVault, withPassphrase, withPassphraseTries } from "../kit/prompts/passphrase.js";

type Flags = OutputFlags & OpenFlags & StoreFlags & { readonly home?: string; readonly fix?: true };

export function define(command: Command, io: Io): void {
  withHome(command)
    .description(
      "Checks the files of a home: owners and modes, links, leftovers, the vault's header, every secret's file, the " +
        "token, the certificate and the audit log. A running server, locked or unlocked, is not disturbed. " +
        "With a database (--store), its secrets are checked instead of the home's.",
    )
    .option(
      "--fix",
      "fix what is safe to fix, and say what was done; with a database, also create or update its tables",
    )
    .option(
      "--open",
      "also decrypt every secret; asks for the passphrase; implied by --passphrase-file and --passphrase-fd",
    );
  withOutput(withPassphrase(withStore(command))).action((flags) => doctor(io, flags));
}

async function doctor(io: Io, flags: Flags): Promise<void> {
  io.umask(0o077);
  const home = readOneSetting("home", flags.home, io.env);
  if (!opensVault(flags)) return inspect(io, home, flags, null);
  await withPassphraseTries(io, flags, "Passphrase of the vault: ", (passphrase) =>
    inspect(io, home, flags, passphrase),
  );
}

async function inspect(io: Io, home: string, flags: Flags, passphrase: Bytes | null): Promise<void> {
  const opens = passphrase !== null;
  const { store, storePasswordFile } = await storeSettings(io, home, flags);
  const fix = flags.fix === true;
  const place = store ?? home;
  const { database } = await engineFor(place);
  const opened = (await database?.open(place, storePasswordFile, { creates: fix })) ?? null;
  const options = { fix, passphrase, store: opened };
  const inspected = await diagnose(io, home, options).finally(() => opened?.close());
  const status = inspected.server === null ? null : await askServer(io, home);
  const diagnosis = { ...inspected, findings: [...inspected.findings, ...findingsOfServer(inspected, status)] };
  const served = database === null && diagnosis.current === null ? servedDatabase(status) : null;
  const vaultPort = status?.vaultPort ?? null;
  if (flags.json) printJson(io, { ...asJson(diagnosis, served), vaultPort });
  else if (!flags.quiet) printRows(io, withHints(io, asText(io, diagnosis, opens, fix, served, vaultPort)));
  io.exitCode = diagnosisExitCode(diagnosis, served);
}

/** The database of the home's server, as the server sees it. */
type ServedDatabase = {
  readonly vaultPath: string;
  readonly initialized: boolean;
  readonly secrets: number;
  /** Why the server cannot use the database; null when it can. */
  readonly problem: string | null;
};

/** How long a server may take to say its state, in milliseconds. */
const longestAnswer = 5_000;

/** Returns null when the server does not respond. */
async function askServer(io: Io, home: string): Promise<VaultStatus | null> {
  try {
    const flags = { home, autostart: false, quiet: true, timeout: longestAnswer } as const;
    return await withClient(io, flags, (client) => client.status());
  } catch (error) {
    if (error instanceof CommandFailure) return null;
    throw error;
  }
}

/** Returns what only the server knows: its certificate may be anywhere. That of the home has a finding from 30 days before. */
function findingsOfServer({ server, home, findings }: Diagnosis, status: VaultStatus | null): readonly Finding[] {
  const end = status === null ? null : certificateEndText(status);
  if (end === null || findings.some(({ code }) => code === "certificate-expired")) return [];
  const [code, path, message] = ["certificate-expired", server?.url ?? home, `its certificate ${end}`] as const;
  return [{ code, path, message, remedy: certificateRemedy, fix: null }];
}

/** Returns null when the server does not respond, or has no database. */
function servedDatabase(status: VaultStatus | null): ServedDatabase | null {
  if (status === null || !isStoreUrl(status.vaultPath)) return null;
  const { vaultPath, initialized, secretCount: secrets, storageAvailable, storageProblem } = status;
  const problem = storageAvailable === false ? (storageProblem ?? "the database does not respond") : null;
  return { vaultPath, initialized, secrets, problem };
}

async function diagnose(io: Io, home: string, options: Omit<DoctorOptions, "onProgress">): Promise<Diagnosis> {
  const bar = progressBar(io, "checking");
  try {
    return await runDoctor(home, { ...options, onProgress: bar.show });
  } catch (error) {
    throw error instanceof VaultError ? failureOfVault(error) : error;
  } finally {
    bar.end();
  }
}

export function diagnosisExitCode({ findings, current }: Diagnosis, served: ServedDatabase | null = null): number {
  if (findings.length > 0) return exitCodes.findings;
  if (served !== null && served.problem !== null) return exitCodes.unexpected;
  return current === null && !served?.initialized ? exitCodes.notInitialized : exitCodes.ok;
}

/** Stable: members may be added, but never change or disappear. */
export function asJson(
  { home, vaultPath, server, current, kept, secrets, opened, expiry, fixed, findings }: Diagnosis,
  served: ServedDatabase | null = null,
): object {
  const plain = ({ code, path, message, remedy, fix }: Finding) => {
    return { code, path, message, remedy, fixable: fix !== null };
  };
  return {
    ok: findings.length === 0 && (current !== null || (served?.initialized === true && served.problem === null)),
    home,
    vaultPath,
    server,
    vault: current,
    kept,
    secrets,
    opened,
    expiry,
    served,
    findings: [
      ...fixed.map((finding) => ({ ...plain(finding), fixed: true, did: finding.did })),
      ...findings.map((finding) => ({ ...plain(finding), fixed: false, did: null })),
    ],
  };
}

function asText(
  io: Io,
  diagnosis: Diagnosis,
  wanted: boolean,
  fix: boolean,
  served: ServedDatabase | null,
  vaultPort: number | null,
): string {
  const paint = painter(io);
  const fixed = diagnosis.fixed.map(({ code, path, message, did }) => {
    return `${paint("yellow", "fixed")}  ${printable(path)}\n       ${message} (${code}): ${did}\n`;
  });
  const findings = diagnosis.findings.map(({ code, path, message, remedy, fix }) => {
    const text = `${printable(message)} (${code})\n       ${printable(remedy)}${advice(fix, diagnosis.server !== null)}`;
    return `${paint("red", "wrong")}  ${printable(path)}\n       ${text}\n`;
  });
  const facts = served === null ? about(diagnosis, wanted) : aboutServed(diagnosis.home, served);
  const last =
    served === null || diagnosis.findings.length > 0 ? verdict(diagnosis, paint, fix) : databaseVerdict(served);
  const port = vaultPort === null ? [] : [`clients of Vault are served on port ${vaultPort}\n`];
  return [...facts, ...port, ...fixed, ...findings, last].join("");
}

function advice(fix: Finding["fix"], served: boolean): string {
  if (fix === null) return "";
  return served && !fix.whileServed
    ? "; or stop the server and run strongroom doctor --fix"
    : "; or run strongroom doctor --fix";
}

function about(diagnosis: Diagnosis, wanted: boolean): string[] {
  const { server, current, kept, secrets, opened, expiry } = diagnosis;
  const place = printable(diagnosedPlace(diagnosis));
  if (current === null) return [`${place}: there is no current vault\n`];
  const depth = opened ? ", opened with the passphrase" : "";
  return [
    `${place}: vault ${current}, ${counted(secrets, "secret")}${depth}\n`,
    ...(expiry === null || expiry.expired + expiry.within30Days === 0 ? [] : [`expiring: ${expiringText(expiry)}\n`]),
    ...(wanted && !opened ? ["the secrets could not be opened: see the finding about the header\n"] : []),
    ...(kept.length > 0 ? [`earlier vaults, kept under their own passphrases: ${kept.join(", ")}\n`] : []),
    ...(server === null ? [] : [`a server is running (pid ${server.pid})\n`]),
  ];
}

function aboutServed(home: string, { vaultPath, secrets, problem }: ServedDatabase): string[] {
  const where = `${printable(home)}: its server keeps the vault in ${printable(vaultPath)}, ${counted(secrets, "secret")}`;
  return [`${where}\n`, ...(problem === null ? [] : [`the server cannot use the database: ${printable(problem)}\n`])];
}

function databaseVerdict({ initialized }: ServedDatabase): string {
  if (!initialized) return "there is no vault in it: create one with  strongroom init\n";
  return "no problems found in the home; check the database with  strongroom doctor --store URL\n";
}

function verdict(diagnosis: Diagnosis, paint: ReturnType<typeof painter>, fix: boolean): string {
  const { findings, current, vaultPath } = diagnosis;
  if (findings.length > 0) return `${counted(findings.length, "finding")}\n`;
  if (current !== null) return `${paint("green", "no problems found")}\n`;
  const place = printable(diagnosedPlace(diagnosis));
  if (fix && isStoreUrl(vaultPath)) {
    return `the tables in ${place} are ready: start a server on them, then create a vault with  strongroom init\n`;
  }
  return `there is no vault in ${place}: create one with  strongroom init, or choose another place with --home or --store\n`;
}

/** Where the vault is looked for: the home, or the database. */
function diagnosedPlace({ home, vaultPath }: Diagnosis): string {
  return isStoreUrl(vaultPath) ? vaultPath : home;
}
