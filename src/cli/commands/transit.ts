/** `strongroom transit`: keys that encrypt and sign in the server and never leave it. */
import { Argument, type Command, Option } from "commander";
import type { TransitKey, TransitKeyType } from "../../client/client.js";
import { integer } from "../../config/readers.js";
import { transitKeyTypes } from "../../contract/names.js";
import { onlyForActions } from "../kit/args/args.js";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection, withPatientClient } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Bytes, Io } from "../kit/io.js";
import {
  displayWidth,
  localMinute,
  type OutputFlags,
  padded,
  printable,
  printableLines,
  printJson,
  printLine,
  printRows,
  report,
  sayIfEmpty,
  withResult,
} from "../kit/output.js";
import { readInputFile } from "../kit/prompts/input.js";
import { withPassphraseTries } from "../kit/prompts/passphrase.js";
import { mustConfirm, withYes } from "../kit/prompts/prompt.js";
import { type FileKey, readKeyFile, UnusableKey } from "../kit/ssh/openssh-key.js";
import { sshPublicKey } from "../kit/ssh/ssh-public-key.js";

const actions = ["create", "ls", "show", "rotate", "config", "rm", "import"] as const;
type Action = (typeof actions)[number];

type Flags = OutputFlags &
  ConnectionFlags & {
    readonly type?: TransitKeyType;
    readonly exportable?: true;
    readonly minDecryptionVersion?: number;
    readonly deletionAllowed?: boolean;
    readonly passphraseFile?: string;
    readonly ssh?: true;
    readonly yes?: true;
  };

const details = `
create makes a key, import takes one from a file: a private key of OpenSSH or in
PEM, with a passphrase or without, which is asked for, an identity of age, or
with --type aes256-gcm96 or hmac the key's bytes. ls lists the keys, show prints
one with its versions and public keys; --ssh prints the public key for
authorized_keys. rotate adds a version, which encrypts and signs from then on.
config changes settings. rm deletes a key whose deletion is allowed: what it
encrypted is lost.

types: aes256-gcm96 encrypts and makes MACs; rsa-2048 and rsa-4096 encrypt a
little, and sign; ed25519 and ecdsa-p256 sign; x25519 is an identity of age;
hmac makes MACs.`;

export function define(command: Command, io: Io): void {
  command
    .description("Transit keys encrypt and sign in the server; their private parts never leave it.")
    .addArgument(new Argument("<action>", "what to do with keys").choices([...actions]))
    .argument("[name]", "the key's name, a path such as app/backups")
    .argument("[file]", "import: the file of the key")
    .addOption(new Option("--type <type>", "create, import: what the key can do").choices(transitKeyTypes))
    .option("--exportable", "create, import: the root token may export the private part")
    .option("--min-decryption-version <number>", "config: the lowest version that decrypts", integer(1, 500))
    .option("--deletion-allowed", "config: the key can be deleted")
    .option("--no-deletion-allowed", "config: the key cannot be deleted")
    .option("--passphrase-file <file>", "import: read the passphrase of the key from a file")
    .option("--ssh", "show: print the public key in OpenSSH's form")
    .addHelpText("after", details);
  const taken = {
    type: ["create", "import"],
    exportable: ["create", "import"],
    minDecryptionVersion: ["config"],
    deletionAllowed: ["config"],
    passphraseFile: ["import"],
    ssh: ["show"],
    yes: ["rm"],
  };
  onlyForActions(withYes(withResult(withConnection(command))), taken).action((action, name, file, flags) =>
    transit(io, action, name, file, flags),
  );
}

async function transit(
  io: Io,
  action: Action,
  name: string | undefined,
  file: string | undefined,
  flags: Flags,
): Promise<void> {
  if (file !== undefined && action !== "import") throw usage(`${action} takes no file`);
  if (action === "ls") return name === undefined ? list(io, flags) : Promise.reject(usage("ls takes no name"));
  if (name === undefined) throw usage(`${action} needs the key's name`);
  const key = mustBePath(name);
  if (action === "create") return create(io, key, flags);
  if (action === "import") return importKey(io, key, file, flags);
  if (action === "show") return show(io, key, flags);
  if (action === "rotate") return rotate(io, key, flags);
  return action === "config" ? configure(io, key, flags) : remove(io, key, flags);
}

function usage(problem: string): CommandFailure {
  return new CommandFailure("usage", `${problem}: strongroom transit --help shows more`);
}

async function list(io: Io, flags: Flags): Promise<void> {
  const { keys, damaged } = await withClient(io, flags, (client) => client.listTransitKeys());
  if (flags.json) return printJson(io, { keys, ...(damaged && { damaged }) });
  const width = Math.max(0, ...keys.map(({ name }) => displayWidth(printable(name))));
  for (const { name, type, latestVersion } of keys) {
    printRows(
      io,
      `${io.stdout.isTTY ? `${padded(printable(name), width)}  ${type}  version ${latestVersion}` : name}\n`,
    );
  }
  sayIfEmpty(io, keys.length + (damaged?.length ?? 0), "no transit keys: strongroom transit create  makes one", flags);
  if (damaged === undefined) return;
  throw new CommandFailure("findings", `damaged keys: ${damaged.map(printable).join(", ")}; see  strongroom doctor`);
}

async function create(io: Io, name: string, flags: Flags): Promise<void> {
  const { type, exportable } = flags;
  const key = await withPatientClient(io, flags, (client) => client.createTransitKey(name, { type, exportable }));
  reportKey(io, flags, key, `created the ${key.type} key ${name}`);
}

async function importKey(io: Io, name: string, file: string | undefined, flags: Flags): Promise<void> {
  if (file === undefined) throw usage("import needs the file of the key");
  const bytes = await readInputFile(file, printable(file));
  const material = await keyMaterial(io, bytes, flags, file);
  try {
    const options = { type: material.type, exportable: flags.exportable, key: material.der };
    const key = await withPatientClient(io, flags, (client) => client.createTransitKey(name, options));
    reportKey(io, flags, key, `imported the ${key.type} key ${name}; the file is unchanged`);
  } finally {
    material.der.fill(0);
    bytes.fill(0);
  }
}

async function keyMaterial(
  io: Io,
  bytes: Buffer,
  flags: Flags,
  file: string,
): Promise<{ readonly type: TransitKeyType; readonly der: Buffer }> {
  if (flags.type === "aes256-gcm96" || flags.type === "hmac") return { type: flags.type, der: bytes };
  const key = await readKey(bytes, null).catch((error) => {
    if (!(error instanceof CommandFailure) || error.exit !== "wrongPassphrase") throw error;
    const question = `Passphrase of ${printable(file)}: `;
    return withPassphraseTries(io, flags, question, (passphrase) => readKey(bytes, passphrase));
  });
  if (flags.type === undefined || flags.type === key.type) return key;
  key.der.fill(0);
  throw usage(`${printable(file)} holds a key of type ${key.type}`);
}

/** @throws CommandFailure wrongPassphrase, also where the key needs one; usage */
async function readKey(bytes: Buffer, passphrase: Bytes | null): Promise<FileKey> {
  try {
    return readKeyFile(bytes, passphrase);
  } catch (error) {
    if (!(error instanceof UnusableKey)) throw error;
    throw new CommandFailure(error.reason === "passphrase" ? "wrongPassphrase" : "usage", error.message);
  }
}

async function show(io: Io, name: string, flags: Flags): Promise<void> {
  const key = await withClient(io, flags, (client) => client.showTransitKey(name));
  if (flags.ssh) return printSshKey(io, key);
  if (flags.json) return printJson(io, key);
  printRows(io, `${printable(key.name)}  ${key.type}\n`);
  printRows(io, `exportable ${yesNo(key.exportable)}, deletion allowed ${yesNo(key.deletionAllowed)}\n`);
  for (const [number, { createdAt, publicKey = "" }] of Object.entries(key.versions)) {
    const note = Number(number) < key.minDecryptionVersion ? ", not allowed" : "";
    printRows(io, `version ${number}, ${localMinute(new Date(createdAt))}${note}\n`);
    if (publicKey !== "") io.stdout.write(`${printableLines(publicKey.trimEnd())}\n`);
  }
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}

/** Prints the newest version's public key, as the agent offers it. */
function printSshKey(io: Io, { name, type, latestVersion, versions }: TransitKey): void {
  const pem = versions[String(latestVersion)]?.publicKey;
  const blob = pem === undefined ? null : sshPublicKey(pem);
  if (blob === null) throw new CommandFailure("usage", `${name} is of type ${type}, which SSH does not use`);
  const algorithm = blob.toString("latin1", 4, 4 + blob.readUInt32BE());
  printLine(io, `${algorithm} ${blob.toString("base64")} ${printable(name)}`);
}

async function rotate(io: Io, name: string, flags: Flags): Promise<void> {
  const key = await withPatientClient(io, flags, (client) => client.rotateTransitKey(name));
  reportKey(io, flags, key, `${name} now encrypts and signs with version ${key.latestVersion}`);
}

async function configure(io: Io, name: string, flags: Flags): Promise<void> {
  const { minDecryptionVersion, deletionAllowed } = flags;
  if (minDecryptionVersion === undefined && deletionAllowed === undefined) throw usage("config needs a setting");
  const settings = { minDecryptionVersion, deletionAllowed };
  const key = await withClient(io, flags, (client) => client.configureTransitKey(name, settings));
  reportKey(io, flags, key, `changed the settings of ${name}`);
}

async function remove(io: Io, name: string, flags: Flags): Promise<void> {
  await mustConfirm(io, `Delete the transit key ${printable(name)}? What it encrypted is lost.`, flags);
  await withClient(io, flags, (client) => client.deleteTransitKey(name));
  report(io, flags, { name }, `deleted the transit key ${name}`);
}

function reportKey(io: Io, flags: Flags, key: TransitKey, text: string): void {
  if (flags.json) printJson(io, { ok: true, ...key });
  else report(io, flags, {}, text);
}
