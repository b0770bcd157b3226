/** Check of the vault's directory: its entries, which vault is current, and each vault. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { readFileBytes, replaceFile, systemFiles } from "../../files/durable.js";
import { isGenerationName, nameInPointer } from "../../storage/files/generations.js";
import { findHeader } from "./check-header.js";
import { examineVault, type FoundVault, isHusk } from "./check-vault.js";
import type { Fix } from "./finding.js";
import { entriesOf, examine, type Inspection, reading } from "./inspection.js";
import { reportStray } from "./stray-files.js";

export type VaultFacts = {
  /** Name of the current vault; null when there is none, or it is unknown. */
  readonly current: string | null;
  /** Names of the other vaults: kept by a forced init, or left by an interrupted one. */
  readonly kept: readonly string[];
  /** Number of secrets in the current vault. */
  readonly secrets: number;
};

export async function examineVaults(inspection: Inspection): Promise<VaultFacts> {
  const { vault } = inspection.home;
  if ((await examine(inspection, vault, "directory")) === null) return { current: null, kept: [], secrets: 0 };
  const names = await generationNames(inspection);
  const vaults: FoundVault[] = [];
  for (const name of names) {
    const directory = join(vault, name);
    if ((await examine(inspection, directory, "directory")) === null) continue;
    vaults.push({ name, directory, header: await findHeader(inspection, directory) });
  }
  const current = await findCurrent(inspection, names, vaults);
  let secrets = 0;
  for (const each of vaults) {
    const count = await examineVault(inspection, each, each.name === current);
    if (each.name === current) secrets = count;
  }
  const kept = vaults.map(({ name }) => name).filter((name) => name !== current);
  return { current, kept, secrets };
}

/** Checks the directory's entries; returns the vaults among them. */
async function generationNames(inspection: Inspection): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await entriesOf(inspection, inspection.home.vault)) {
    const path = join(inspection.home.vault, entry.name);
    if (entry.isDirectory() && isGenerationName(entry.name)) names.push(entry.name);
    else if (entry.name === "server.pid") await examine(inspection, path, "file");
    else if (entry.name !== "current") await reportStray(inspection, path, entry);
  }
  return names.sort((a, b) => Number(a.slice(4)) - Number(b.slice(4)));
}

async function findCurrent(
  inspection: Inspection,
  names: readonly string[],
  vaults: readonly FoundVault[],
): Promise<string | null> {
  const path = join(inspection.home.vault, "current");
  const candidates = () => findCandidates(inspection, names, vaults);
  if ((await reading(inspection, path, () => lstat(path))) === null)
    return reportNoCurrent(inspection, path, await candidates());
  if ((await examine(inspection, path, "file")) === null) return null;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, 64));
  if (bytes === null) return null;
  const name = nameInPointer(bytes);
  if (vaults.some((vault) => vault.name === name)) return name;
  const message = isGenerationName(name) ? `it names ${name}, which does not exist` : "it names no vault";
  inspection.report({ code: "current-damaged", path, message, remedy: nameOne(await candidates()), fix: null });
  return null;
}

/** Names of vaults that may be the current one: as they are, or once they are repaired. */
type Candidates = { readonly usable: readonly string[]; readonly broken: readonly string[]; readonly filled: boolean };

async function findCandidates(
  inspection: Inspection,
  names: readonly string[],
  vaults: readonly FoundVault[],
): Promise<Candidates> {
  const usable = vaults.filter(({ header }) => header !== null).map(({ name }) => name);
  const broken: string[] = [];
  let filled = false;
  for (const name of names) {
    const directory = join(inspection.home.vault, name);
    const secrets = join(directory, "secrets");
    if ((await entriesOf(inspection, secrets)).length > 0) filled = true;
    if (usable.includes(name)) continue;
    const examined = vaults.some((vault) => vault.name === name);
    if (!examined || !(await isHusk(inspection, await entriesOf(inspection, directory), secrets))) broken.push(name);
  }
  return { usable, broken, filled };
}

/** No finding before the first init: an interrupted one leaves an empty vault. */
function reportNoCurrent(inspection: Inspection, path: string, candidates: Candidates): null {
  const { usable, broken, filled } = candidates;
  if (!filled && broken.length === 0) return null;
  const message = "it is missing, so nothing says which vault is the current one";
  const [only, another] = usable;
  const certain = only !== undefined && another === undefined && broken.length === 0;
  const fix = certain ? nameInCurrent(path, only) : null;
  inspection.report({ code: "current-missing", path, message, remedy: nameOne(candidates), fix });
  return null;
}

function nameInCurrent(path: string, name: string): Fix {
  const run = () => replaceFile(systemFiles, path, Buffer.from(`${name}\n`));
  return { did: `wrote ${name} into it, the only vault`, whileServed: false, run };
}

function nameOne({ usable, broken }: Candidates): string {
  const fixed = broken.map((name) => `${name} once its header is restored from a backup`);
  if (usable.length === 0 && broken.length === 0) return "stop the server, and restore the vault from a backup";
  return `stop the server, and write the name of the current vault into it: ${[...usable, ...fixed].join(", or ")}, and a newline`;
}
