/**
 * `strongroom age`: recipients and identities of age for transit keys of the vault.
 * age decrypts through `age-plugin-strongroom`, and the server unwraps the file key: the identity never leaves it.
 * Encrypting needs the recipient alone, and no server.
 */
import { Argument, type Command } from "commander";
import { mustBePath } from "../../cli/kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, printLine } from "../../cli/kit/output.js";
import { identityText } from "./identity.js";

const details = `
A key of type x25519 is an identity of age that stays in the server:
  strongroom transit create age/me --type x25519
  strongroom age recipient age/me > recipients.txt
  age -R recipients.txt -o notes.age notes.txt
  strongroom age identity age/me > me.txt
  age -d -i me.txt notes.age
The identity names the key and is no secret. age finds age-plugin-strongroom on
PATH; age -d -j strongroom tries every x25519 key that the token may use.`;

export function define(command: Command, io: Io): void {
  command
    .description("Prints recipients and identities of age, for x25519 keys of the vault.")
    .addArgument(new Argument("<what>", "what to print").choices(["recipient", "identity"]))
    .argument("<name>", "the transit key's name")
    .addHelpText("after", details);
  withConnection(command).action((what, name, flags) => age(io, what, mustBePath(name), flags));
}

async function age(io: Io, what: string, name: string, flags: ConnectionFlags): Promise<void> {
  const { type, latestVersion, versions } = await withClient(io, flags, (client) => client.showTransitKey(name));
  const recipient = versions[String(latestVersion)]?.publicKey ?? "";
  if (type !== "x25519")
    throw new CommandFailure("usage", `${printable(name)} is of type ${type}: age uses a key of type x25519`);
  if (what === "recipient") return printLine(io, recipient);
  printLine(io, `# the transit key ${printable(name)}, recipient ${recipient}`);
  printLine(io, identityText(name));
}
