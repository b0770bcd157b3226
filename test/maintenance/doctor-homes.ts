/** Homes for doctor's tests: created once by a real server, and copied for each test that damages one. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { asJson, diagnosisExitCode } from "../../src/cli/commands/doctor.js";
import { runDoctor } from "../../src/maintenance/doctor/inspect-home.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { passphrase, realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";

export type Json = { readonly [name: string]: unknown };

export type Found = {
  readonly code: string;
  readonly path: string;
  readonly message: string;
  readonly remedy: string;
  readonly fixable: boolean;
  readonly fixed: boolean;
  readonly did: string | null;
};

export type Report = {
  readonly exit: number | null;
  readonly json: Json;
  readonly findings: readonly Found[];
};

/** A home whose vault has the secrets a, a/b, c/d and Big/X, and the client token ci; with `twice`, a forced init has kept an earlier one. */
export async function makeHome(twice = false): Promise<string> {
  const server = await startTestServer(realScryptCost);
  if (twice) {
    await mustInit(server);
    await mustPut(server, "earlier", "v");
    mustSucceed(await send(server, { method: "POST", path: "/v1/init", body: { passphrase, force: true } }));
  } else await mustInit(server);
  for (const path of ["a", "a/b", "c/d", "Big/X"]) await mustPut(server, path, `value-canary of ${path}`);
  await mustPut(server, "Big/X", "value-canary of a later Big/X"); // keeps the first as an earlier version
  await mustCreateToken(server, { name: "ci", paths: ["c/"] });
  await server.stop();
  return server.home;
}

export function copyHome(home: string): string {
  const copy = join(temporaryDirectory(), "home");
  copyTree(home, copy);
  return copy;
}

/** Inspects a home as doctor does, in this process: a command costs four times the CPU. */
export async function inspect(
  home: string,
  flags: { fix?: true; open?: true } = {},
  onProgress = () => {},
): Promise<Report> {
  const bytes = flags.open ? Uint8Array.from(Buffer.from(passphrase)) : null;
  const before = process.umask(0o077);
  try {
    const diagnosis = await runDoctor(home, { fix: flags.fix === true, passphrase: bytes, onProgress });
    const json = JSON.parse(JSON.stringify(asJson(diagnosis))) as Json;
    return { exit: diagnosisExitCode(diagnosis), json, findings: json["findings"] as readonly Found[] };
  } finally {
    process.umask(before);
  }
}

/** Runs the command doctor on a home; returns its report. */
export async function doctor(home: string, ...flags: readonly string[]): Promise<Report> {
  const { code, stdout, stderr } = await run(["doctor", "--json", "--home", home, ...flags]);
  if (stdout === "") throw new Error(`doctor printed no report: ${stderr}`);
  const json = JSON.parse(stdout) as Json;
  return { exit: code, json, findings: json["findings"] as readonly Found[] };
}

/** Paths and contents of everything below a directory. */
export function readContents(directory: string): Json {
  const entries = readdirSync(directory, { withFileTypes: true, recursive: true });
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile()) return [path, readText(path)];
      return [path, entry.isSymbolicLink() ? readlinkSync(path) : "no file"];
    }),
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "unreadable"; // by its mode
  }
}
