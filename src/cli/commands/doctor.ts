/** `strongroom doctor`: flags, passphrase, and printing of the findings. */
import type { Command } from "commander";
import { isStoreUrl } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { VaultError } from "../../errors.js";
import type { Finding } from "../../maintenance/doctor/finding.js";
import { type Diagnosis, type DoctorOptions, runDoctor } from "../../maintenance/doctor/inspect-home.js";
import { openDatabaseAt } from "../../maintenance/vault-place.js";
import { exitCodes, failureOfVault } from "../lib/errors.js";
import { counted, expiringText, type OutputFlags, painter, printable, printJson, withOutput } from "../lib/output.js";
import { type OpenFlags, opensVault, readPassphrase, withPassphrase } from "../lib/passphrase.js";
import { progressBar } from "../lib/progress.js";
import { withHome } from "../lib/server.js";
import { type StoreFlags, storeSettings, withStore } from "../lib/settings-flags.js";

type Flags = OutputFlags & OpenFlags & StoreFlags & { readonly home?: string; readonly fix?: true };

export function define(command: Command): void {
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
  withOutput(withPassphrase(withStore(command))).action(doctor);
}

async function doctor(flags: Flags): Promise<void> {
  process.umask(0o077);
  const home = readOneSetting("home", flags.home, process.env);
  const opens = opensVault(flags);
  const passphrase = opens ? await readPassphrase(flags, "Passphrase of the vault: ") : null;
  const { store, storePasswordFile } = storeSettings(flags);
  const fix = flags.fix === true;
  const opened = store === null ? null : await openDatabaseAt(store, storePasswordFile, { creates: fix });
  const options = { fix, passphrase, store: opened };
  const diagnosis = await diagnose(home, options).finally(() => opened?.close());
  if (flags.json) printJson(asJson(diagnosis));
  else if (!flags.quiet) process.stdout.write(asText(diagnosis, opens, fix));
  process.exitCode = exitCodeOf(diagnosis);
}

async function diagnose(home: string, options: Omit<DoctorOptions, "onProgress">): Promise<Diagnosis> {
  const bar = progressBar("checking");
  try {
    return await runDoctor(home, { ...options, onProgress: bar.show });
  } catch (error) {
    throw error instanceof VaultError ? failureOfVault(error) : error;
  } finally {
    bar.end();
  }
}

export function exitCodeOf({ findings, current }: Diagnosis): number {
  if (findings.length > 0) return exitCodes.findings;
  return current === null ? exitCodes.notInitialized : exitCodes.ok;
}

/** Stable: members may be added, but never change or disappear. */
export function asJson({
  home,
  vaultPath,
  server,
  current,
  kept,
  secrets,
  opened,
  expiry,
  fixed,
  findings,
}: Diagnosis): object {
  const plain = ({ code, path, message, remedy, fix }: Finding) => {
    return { code, path, message, remedy, fixable: fix !== null };
  };
  return {
    ok: findings.length === 0 && current !== null,
    home,
    vaultPath,
    server,
    vault: current,
    kept,
    secrets,
    opened,
    expiry,
    findings: [
      ...fixed.map((finding) => ({ ...plain(finding), fixed: true, did: finding.did })),
      ...findings.map((finding) => ({ ...plain(finding), fixed: false, did: null })),
    ],
  };
}

function asText(diagnosis: Diagnosis, wanted: boolean, fix: boolean): string {
  const paint = painter(process.stdout);
  const fixed = diagnosis.fixed.map(({ code, path, message, did }) => {
    return `${paint("yellow", "fixed")}  ${printable(path)}\n       ${message} (${code}): ${did}\n`;
  });
  const findings = diagnosis.findings.map(({ code, path, message, remedy, fix }) => {
    const text = `${printable(message)} (${code})\n       ${printable(remedy)}${hintOf(fix, diagnosis.server !== null)}`;
    return `${paint("red", "wrong")}  ${printable(path)}\n       ${text}\n`;
  });
  return [...about(diagnosis, wanted), ...fixed, ...findings, verdict(diagnosis, paint, fix)].join("");
}

function hintOf(fix: Finding["fix"], served: boolean): string {
  if (fix === null) return "";
  return served && !fix.whileServed
    ? "; or stop the server and run strongroom doctor --fix"
    : "; or run strongroom doctor --fix";
}

function about(diagnosis: Diagnosis, wanted: boolean): string[] {
  const { server, current, kept, secrets, opened, expiry } = diagnosis;
  const place = printable(placeOf(diagnosis));
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

function verdict(diagnosis: Diagnosis, paint: ReturnType<typeof painter>, fix: boolean): string {
  const { findings, current, vaultPath } = diagnosis;
  if (findings.length > 0) return `${counted(findings.length, "finding")}\n`;
  if (current !== null) return `${paint("green", "no problems found")}\n`;
  const place = printable(placeOf(diagnosis));
  if (fix && isStoreUrl(vaultPath)) {
    return `the tables in ${place} are ready: start a server on them, then create a vault with  strongroom init\n`;
  }
  return `there is no vault in ${place}: create one with  strongroom init, or choose another place with --home or --store\n`;
}

/** Where the vault is looked for: the home, or the database. */
function placeOf({ home, vaultPath }: Diagnosis): string {
  return isStoreUrl(vaultPath) ? vaultPath : home;
}
