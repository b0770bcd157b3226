/** Installation and removal of the user's service. A file that this program did not write is left alone. */

import { spawn } from "node:child_process";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { findWeakPlace, weakPlaceText } from "../../client/ownership.js";
import { missingAsNull } from "../../files/durable.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { writeOut } from "../kit/output/output-file.js";
import { printable } from "../kit/output.js";
import type { CommandLine } from "../kit/programs/programs.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";
import type { ServiceManager } from "./manager.js";
import type { ServicePlan } from "./plan.js";

/** A comment of either format, at its end. */
const marks = {
  systemctl: "# Written by strongroom service install.\n",
  launchctl: "<!-- Written by strongroom service install. -->\n",
};

function ownMark({ program }: ServiceManager): string {
  return program === "systemctl" ? marks.systemctl : marks.launchctl;
}

/** Returns the whole file. */
export function serviceFile(manager: ServiceManager, plan: ServicePlan): string {
  return `${manager.text(plan)}${ownMark(manager)}`;
}

/** @throws CommandFailure conflict for a file of another's, unexpected when the service manager refuses */
export async function installService(io: Io, manager: ServiceManager, plan: ServicePlan): Promise<void> {
  await refuseForeign(manager);
  const wasThere = await isInstalled(manager);
  await mkdir(dirname(manager.file), { recursive: true });
  await writeOut(io, [serviceFile(manager, plan)], { output: manager.file, overwrite: true });
  if (wasThere && manager.program === "launchctl") for (const each of manager.beforeRemoval) await runProgram(io, each);
  try {
    for (const each of manager.install) await mustRun(io, each);
  } catch (error) {
    if (!wasThere) await removeFiles(manager); // what cannot start now must not start at the next login
    throw error;
  }
}

/** Adds the keyring to an installed service; returns its files. @throws CommandFailure usage, conflict, unexpected */
export async function installKeyring(io: Io, manager: ServiceManager, plan: ServicePlan): Promise<readonly string[]> {
  if (manager.keyring.length === 0) throw new CommandFailure("usage", "--keyring needs systemd and a session bus");
  for (const { file } of manager.keyring) {
    await refuseForeign({ ...manager, file });
    await isInstalled({ ...manager, file });
  }
  for (const { file, text } of manager.keyring) {
    await mkdir(dirname(file), { recursive: true });
    await writeOut(io, [`${text(plan)}${ownMark(manager)}`], { output: file, overwrite: true });
  }
  for (const each of manager.reload) await mustRun(io, each);
  return manager.keyring.map(({ file }) => file);
}

/** The file says what runs as this user, and root must not write into the directories of another. @throws CommandFailure */
async function refuseForeign({ file }: ServiceManager): Promise<void> {
  const weak = await findWeakPlace(file);
  if (weak !== null) throw new CommandFailure("usage", printable(weakPlaceText(file, weak)));
}

async function removeFiles(manager: ServiceManager): Promise<void> {
  const { file, links, keyring } = manager;
  for (const each of [file, ...links]) await rm(each, { force: true });
  for (const own of keyring) if (await isInstalled({ ...manager, ...own })) await rm(own.file, { force: true });
}

/** @throws CommandFailure notFound, conflict, unexpected */
export async function uninstallService(io: Io, manager: ServiceManager): Promise<void> {
  await refuseForeign(manager);
  if (!(await isInstalled(manager))) {
    throw new CommandFailure("notFound", `no service is installed: there is no ${manager.file}`);
  }
  const isThere = await answers(io, manager);
  if (isThere && (await succeeds(io, manager.isLoaded)))
    for (const each of manager.beforeRemoval) await mustRun(io, each);
  await removeFiles(manager);
  if (isThere) for (const each of manager.afterRemoval) await mustRun(io, each);
}

/** @throws CommandFailure conflict for a file of another's */
export async function isInstalled(manager: ServiceManager): Promise<boolean> {
  const text = await missingAsNull(readFile(manager.file, "utf8"));
  if (text === null) return false;
  if (text.endsWith(ownMark(manager))) return true;
  const problem = `${manager.file} was not written by strongroom service install, or was changed`;
  throw new CommandFailure("conflict", `${problem}: move it away first`);
}

export function isRunning(io: Io, { isRunning }: ServiceManager): Promise<boolean> {
  return succeeds(io, isRunning);
}

async function succeeds(io: Io, command: CommandLine): Promise<boolean> {
  return (await runProgram(io, command)).code === 0;
}

/** Whether the manager runs for this user: in a container or after su, its file can be removed without it. */
async function answers(io: Io, { isRunning }: ServiceManager): Promise<boolean> {
  const { code, said } = await runProgram(io, isRunning);
  return code !== null && !noBus.test(said);
}

const noBus = /connect to .*bus/i;

async function mustRun(io: Io, command: CommandLine): Promise<void> {
  const { code, said } = await runProgram(io, command);
  if (code === 0) return;
  const problem = printable(`${command.join(" ")} failed: ${said.trim()}`);
  throw new CommandFailure("unexpected", `${problem}${code === null || noBus.test(said) ? noSession : ""}`);
}

/** After su and sudo, and in containers. */
const noSession = `
no service manager runs for this user here: log in as this user (su and sudo are not enough), or run  strongroom up`;

/** `said`: on standard error, or why it did not start. */
function runProgram(
  io: Io,
  [program, ...args]: CommandLine,
): Promise<{ readonly code: number | null; readonly said: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: withoutTokens(io.env) });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    child
      .on("error", ({ message }) => resolve({ code: null, said: message }))
      .on("close", (code) => resolve({ code, said }));
  });
}
