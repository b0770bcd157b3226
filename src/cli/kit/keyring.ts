/** Keyring of the desktop: `secret-tool` (libsecret) on Linux, `security` on macOS. Texts pass through pipes only. */
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "./errors.js";
import { type CommandLine, feed, isInPath, output } from "./programs.js";

export type Keyring = {
  /** @throws CommandFailure */
  readonly store: (vault: string, key: string) => Promise<void>;
  /** Returns null when there is none; the caller wipes it. */
  readonly lookup: (vault: string) => Promise<Bytes | null>;
};

const service = "strongroom";

/** Returns the keyring's program that is installed. @throws CommandFailure when there is none */
export function findKeyring(path = process.env["PATH"] ?? ""): Keyring {
  if (isInPath("secret-tool", path)) return libsecret;
  if (isInPath("security", path)) return macKeychain;
  const remedy = "install libsecret-tools (Linux), or keep the key in a file: strongroom key create -o FILE";
  throw new CommandFailure("usage", `no program for the desktop's keyring is installed: ${remedy}`);
}

const libsecret: Keyring = {
  async store(vault, key) {
    const attributes = ["service", service, "vault", vault];
    await mustStore(["secret-tool", "store", "--label", `Strongroom: ${vault}`, ...attributes], key);
  },
  lookup: (vault) => lookup(["secret-tool", "lookup", "service", service, "vault", vault]),
};

const macKeychain: Keyring = {
  async store(vault, key) {
    const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
    const command = `add-generic-password -U -s ${service} -a ${quoted(vault)} -w ${quoted(key)}\n`;
    await mustStore(["security", "-i"], command); // as an argument, the key would show in the list of processes
  },
  lookup: (vault) => lookup(["security", "find-generic-password", "-s", service, "-a", vault, "-w"]),
};

async function mustStore(command: CommandLine, input: string): Promise<void> {
  const bytes = new TextEncoder().encode(input);
  const status = await feed(command, bytes).finally(() => bytes.fill(0));
  if (status === 0) return;
  const remedy = "unlock the keyring and try again";
  throw new CommandFailure("unexpected", `${command[0]} could not store the key (exit ${status}): ${remedy}`);
}

async function lookup(command: CommandLine): Promise<Bytes | null> {
  const found = await output(command);
  const newline = found.indexOf(0x0a);
  const key = new Uint8Array(found.subarray(0, newline < 0 ? found.length : newline));
  found.fill(0);
  return key.length === 0 ? null : key;
}
