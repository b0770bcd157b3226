/** Programs that speak Vault's API: found by settings or on PATH, run against a server of the tests. */
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { VaultServer } from "../../tools/rig/vault-client.js";

/** Programs in `bin` here are used before those on PATH. Outside the repository, so that a new clone finds them too. */
export const directory = process.env["VAULT_CLIENTS"] ?? join(homedir(), ".cache", "strongroom-clients");

export const path = [join(directory, "bin"), process.env["PATH"]].join(delimiter);

/** Python with hvac in it. */
export const python = process.env["VAULT_CLIENTS_PYTHON"] ?? join(directory, "python", "bin", "python");

export type Ran = { readonly status: number; readonly stdout: string; readonly stderr: string };

/** Whether a program is there: it ends without an error. */
export function has(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { env: { ...process.env, PATH: path }, stdio: "ignore" }).status === 0;
}

/** Returns the directory of the path that has the program, or undefined. */
export function findProgram(program: string): string | undefined {
  return path.split(delimiter).find((directory) => existsSync(join(directory, program)));
}

/** The environment of a client of the server. Its home is empty, so that no token of the user is read or written. */
export function clientEnvironment(server: VaultServer): NodeJS.ProcessEnv {
  const address = `https://localhost:${server.vaultPort}`;
  const { certificateFile: file, token } = server;
  return {
    ...{ PATH: path, HOME: temporaryDirectory(), LANG: "C.UTF-8" },
    ...{ VAULT_ADDR: address, VAULT_CACERT: file, VAULT_TOKEN: token },
    ...{ BAO_ADDR: address, BAO_CACERT: file, BAO_TOKEN: token },
    ...{ REQUESTS_CA_BUNDLE: file, NODE_EXTRA_CA_CERTS: file },
  };
}

export async function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd?: string,
): Promise<Ran> {
  const options = { env, ...(cwd && { cwd }), maxBuffer: 2 ** 26, encoding: "utf8" } as const;
  return promisify(execFile)(program, args, options).then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    (error: Ran & { code?: number | string }) => ({
      status: typeof error.code === "number" ? error.code : 127,
      stdout: error.stdout ?? "",
      stderr: error.stderr ?? String(error),
    }),
  );
}

/** Runs a program that must end without an error; returns what it printed. */
export async function mustRun(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd?: string,
): Promise<string> {
  const ran = await run(program, args, env, cwd);
  expect(ran.status, `${program} ${args.join(" ")}\n${ran.stdout}${ran.stderr}`).to.equal(0);
  return ran.stdout;
}
