/** Clients that get credentials from the vault: a home with their configuration, and a token for their own secrets. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../../tools/docs/document-files.js";
import { diskDirectory } from "../../tools/rig/clean-up.js";
import { collect, type Ended } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustLock, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { serverEnvironment, strongroom } from "../cli/command-rows.js";
import { helperEnvironment } from "../extras/helper-programs.js";
import { path } from "./programs.js";

/** Longest life of a client, in milliseconds. */
const timeout = 300_000;

export type Client = {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly run: (program: string, ...args: readonly string[]) => Promise<Ended>;
  readonly token: string;
  readonly revoke: () => Promise<void>;
};

type Rights = { readonly can: readonly string[]; readonly paths: readonly string[] };

let made = 0;

/**
 * Returns a client with a token that has these rights alone.
 * @param files by their names in its home
 */
export async function makeClient(
  server: TestServer,
  rights: Rights,
  files: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): Promise<Client> {
  const home = diskDirectory(); // systemd hides /dev/shm while it reads credentials
  made += 1;
  const { name, token } = await mustCreateToken(server, { name: `client-${made}`, ...rights });
  for (const [file, text] of Object.entries({ ...files, token: `${token}\n` })) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), text, { mode: 0o600 });
  }
  const toolchains = process.env["RUSTUP_HOME"] ?? join(homedir(), ".rustup"); // rustup's cargo is found by it
  const rust: Record<string, string> = existsSync(toolchains) ? { RUSTUP_HOME: toolchains } : {};
  const own = helperEnvironment(server, { HOME: home, STRONGROOM_TOKEN_FILE: join(home, "token"), ...rust, ...more });
  const env = { ...own, PATH: [own["PATH"], path].join(delimiter) };
  return {
    ...{ home, env, token },
    run: (program, ...args) => {
      const child = spawn(program, args, { env, cwd: home, timeout, killSignal: "SIGKILL" });
      child.stdin.on("error", () => {}).end();
      return collect(child).ended;
    },
    revoke: async () => void mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${name}` })),
  };
}

/**
 * Checks that a client works, fails with the reason while the vault is locked, reaches no other secret with its token, and
 * fails without it.
 * @param attempt what must work with the vault alone
 */
export async function mustNeedVault(
  server: TestServer,
  client: Client,
  attempt: () => Promise<Ended>,
  works: (ended: Ended) => void,
): Promise<void> {
  works(await attempt());
  await mustPut(server, "other/secret", { value: "of-another" });
  const outside = { ...serverEnvironment(server), STRONGROOM_TOKEN: client.token };
  for (const args of [
    ["get", "other/secret"],
    ["rm", "-y", "other/secret"],
    ["token", "ls"],
    ["ls", "other/"],
  ])
    expect((await strongroom(outside, args)).code, args.join(" ")).to.be.oneOf([4, 14]);
  await mustLock(server);
  mustFail(await attempt(), /vault is locked/);
  await mustUnlock(server);
  works(await attempt());
  await client.revoke();
  mustFail(await attempt(), /token/);
}

function mustFail({ code, stdout, stderr }: Ended, says: RegExp): void {
  expect(code, stdout).not.to.equal(0);
  expect(stdout + stderr).to.match(says);
}

/** Returns the first block of a page in this language. */
export function recipe(file: string, language: string): string {
  const block = blocksIn(readFileSync(file, "utf8")).find((each) => each.language === language);
  if (block === undefined) throw new Error(`${file} has no block in ${language}`);
  return block.code;
}
