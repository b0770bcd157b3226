/** A server, a home and a shell in which the commands of one document are run, questions answered as a person would. */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pasteMode } from "../../src/cli/kit/prompts/hidden-line.js";
import { later, temporaryDirectory } from "../rig/clean-up.js";
import { makeCommandProgram } from "../rig/command-program.js";
import { freePort } from "../rig/postgres.js";
import { collect, environment, node } from "../rig/process.js";
import { pythonFile } from "../rig/python.js";
import { realScryptCost, startLocalServer } from "../rig/server.js";
import { mustInit, mustPut, mustStatus } from "../rig/test-client.js";
import { blocksIn } from "./document-files.js";

/** State that a document's commands expect besides what the document itself shows. */
export type Setup = {
  /** The document begins before `strongroom init`. */
  readonly fresh?: true;
  /** The document begins before the server is started. */
  readonly stopped?: true;
  /** A script that is run first. */
  readonly prepare?: string;
  /** The server has the port for Vault's clients. */
  readonly forVault?: true;
  /** Values by path. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Text by file name. */
  readonly files?: Readonly<Record<string, string>>;
};

/** The passphrase that is typed at every prompt, and the vault's, unless the document makes it. */
export const passphrase = "quiet lamp river song";
const typedValue = "s3cr3t";

/** Values that the documents show where a sandbox has its own. */
const shownHome = "/home/you/.local/share/strongroom";
const shownPort = "13100";
const shownVaultPort = "8200";
const shownBrokerPort = "13200";

/** Programs that documents call, and that this machine need not have: here they do nothing. */
const inert = ["systemctl", "systemd-creds", "loginctl", "psql"];

/** An agent that a script leaves in the background ends with its shell. */
const endsAgents = "trap '[[ ! -v SSH_AGENT_PID ]] || kill $SSH_AGENT_PID' EXIT";

type Shown = { readonly code: number; readonly output: string };

export type Sandbox = {
  /** Runs a script of bash on a terminal, in the page's directory; stops at the first command that fails. */
  run(script: string): Promise<Shown>;
};

export async function openSandbox(text: string, setup: Setup = {}): Promise<Sandbox> {
  const { fresh, stopped, prepare = "", forVault, secrets = {}, files = {} } = setup;
  const server = await startLocalServer({ ...realScryptCost, ...(forVault && { vaultPort: 0 }) });
  const { vaultPort = shownVaultPort } = await mustStatus(server);
  if (!fresh) await mustInit(server, { passphrase });
  for (const [path, value] of Object.entries(secrets)) await mustPut(server, path, value);
  const directory = temporaryDirectory();
  const fromPage = blocksIn(text).flatMap(({ file, code }) => (file === null ? [] : [[file, code] as const]));
  for (const [name, content] of [...Object.entries(files), ...fromPage]) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content, { mode: 0o700 });
  }
  const env = environment({
    PATH: `${inertPrograms()}:${dirname(await makeCommandProgram())}:${dirname(node)}:${process.env["PATH"]}`,
    HOME: directory,
    STRONGROOM_HOME: server.home,
    STRONGROOM_PORT: String(server.port),
    STRONGROOM_SCRYPT_LOG_N: "14",
    XDG_RUNTIME_DIR: directory,
    TERM: "xterm",
    NO_COLOR: "1",
  });
  const asShown = (output: string) =>
    output
      .replaceAll("\r\n", "\n")
      .replaceAll(pasteMode.on, "")
      .replaceAll(pasteMode.off, "")
      .replace(/[^\n]*\r.\[K/g, "") // a progress bar that has gone
      .replaceAll(server.home, shownHome)
      .replaceAll(directory, "/home/you")
      .replaceAll(String(server.port), shownPort)
      .replaceAll(String(vaultPort), shownVaultPort);
  const brokerPort = await freePort();
  const sandbox: Sandbox = {
    async run(script) {
      const here = script.replaceAll(shownPort, String(server.port)).replaceAll(shownBrokerPort, String(brokerPort));
      const { code, output } = await onTerminal(`${endsAgents}\n${here}`, directory, env);
      return { code, output: asShown(output) };
    },
  };
  const first = `${stopped ? "strongroom shutdown\n" : ""}${prepare}`;
  const { code, output } = first === "" ? { code: 0, output: "" } : await sandbox.run(first);
  if (code !== 0) throw new Error(`exit code ${code} of\n${first}\n${output}`);
  if (/\bstrongroom up\b/.test(text)) later(async () => void (await sandbox.run("strongroom shutdown")));
  return sandbox;
}

/** Returns a directory with programs that do nothing. */
function inertPrograms(): string {
  const directory = temporaryDirectory();
  for (const name of inert) writeFileSync(join(directory, name), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  return directory;
}

async function onTerminal(script: string, cwd: string, env: NodeJS.ProcessEnv): Promise<Shown> {
  const order = JSON.stringify({ script, passphrase, value: typedValue, seconds: 170 });
  const { code, stdout, stderr } = await collect(
    spawn(pythonFile() ?? "python3", ["-IS", resolve("tools/docs/typist.py"), order], { cwd, env }),
  ).ended;
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Shown;
}
