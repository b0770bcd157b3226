/** `strongroom get`: prints the value, the secret as JSON, or copies the value to the clipboard. */
import type { Command } from "commander";
import { type ClipboardFlags, copyAndClear, mustFindClipboard, withClipboard } from "../clipboard/clipboard.js";
import { mustGetVersion, versionOption } from "../secrets/secret-versions.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { mustGet } from "../session/missing-secrets.js";
import { type OutputFlags, printJson, printValue, report, withResult } from "../session/output.js";
import { mustBePath } from "../session/secret-arguments.js";

type Flags = OutputFlags & ConnectionFlags & ClipboardFlags & { readonly version?: number };

export function define(command: Command): void {
  command
    .description("Prints a secret's value and nothing else; adds a newline only on a terminal.")
    .argument("<path>", "the secret's path")
    .addOption(versionOption("--version <number>", "an earlier version, as history lists it"));
  withResult(withConnection(withClipboard(command))).action(get);
}

async function get(path: string, flags: Flags): Promise<void> {
  const clipboard = flags.copy ? mustFindClipboard() : null;
  const wanted = mustBePath(path);
  const { version } = flags;
  const secret = await withClient(flags, (client) => {
    return version === undefined ? mustGet(client, wanted) : mustGetVersion(client, wanted, version);
  });
  const value = Buffer.from(secret.reveal());
  if (clipboard !== null) {
    const seconds = await copyAndClear(clipboard, value, flags);
    const text = `${secret.path} is in the clipboard${seconds === 0 ? "" : ` for ${seconds} s`}`;
    return report(flags, { path: secret.path, copied: true, clearedAfterSeconds: seconds }, text);
  }
  if (flags.json) printJson({ ...secret.toJSON(), value: secret.reveal() });
  else printValue(value);
}
