/** Keyring of the desktop: `secret-tool` (libsecret) on Linux, `security` on macOS. Texts pass through pipes only. */
import type { Bytes } from "../../../../workers/protocol.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { type CommandLine, feed, isInPath, output } from "./programs.js";

type Keyring = {
  /** @throws CommandFailure */
  readonly store: (vault: string, key: string) => Promise<void>;
  /** Returns null when there is none; the caller wipes it. */
  readonly lookup: (vault: string) => Promise<Bytes | null>;
};

const service = "strongroom";

/** Returns the keyring's program that is installed. @throws CommandFailure when there is none */
export function findKeyring(io: Io): Keyring {
  const path = io.env["PATH"] ?? "";
  if (isInPath("secret-tool", path)) return libsecret(io);
  if (isInPath("security", path)) return macKeychain(io);
  const remedy = "install libsecret-tools (Linux), or keep the key in a file: strongroom key create -o FILE";
  throw new CommandFailure("usage", `no program for the desktop's keyring is installed: ${remedy}`);
}

const libsecret = (io: Io): Keyring => ({
  async store(vault, key) {
    const attributes = ["service", service, "vault", vault];
    await mustStore(io, ["secret-tool", "store", "--label", `Strongroom: ${vault}`, ...attributes], key);
  },
  lookup: (vault) => lookup(io, ["secret-tool", "lookup", "service", service, "vault", vault]),
});

const macKeychain = (io: Io): Keyring => ({
  async store(vault, key) {
    const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
    const command = `add-generic-password -U -s ${service} -a ${quoted(vault)} -w ${quoted(key)}\n`;
    await mustStore(io, ["security", "-i"], command); // as an argument, the key would show in the list of processes
  },
  lookup: (vault) => lookup(io, ["security", "find-generic-password", "-s", service, "-a", vault, "-w"]),
});

async function mustStore(io: Io, command: CommandLine, input: string): Promise<void> {
  const bytes = new TextEncoder().encode(input);
  const status = await feed(io, command, bytes).finally(() => bytes.fill(0));
  if (status === 0) return;
  const remedy = "unlock the keyring and try again";
  throw new CommandFailure("unexpected", `${command[0]} could not store the key (exit ${status}): ${remedy}`);
}

async function lookup(io: Io, command: CommandLine): Promise<Bytes | null> {
  const found = await output(io, command);
  const newline = found.indexOf(0x0a);
  const key = new Uint8Array(found.subarray(0, newline < 0 ? found.length : newline));
  found.fill(0);
  return key.length === 0 ? null : key;
}
