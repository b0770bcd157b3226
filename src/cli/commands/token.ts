/** `strongroom token`: the bearer token's file, and its replacement. */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Argument, type Command } from "commander";
import { writeNewToken } from "../../access/root-token.js";
import { isToken } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { systemCode } from "../../errors.js";
import { missingAsNull } from "../../files/durable.js";
import { reasonOf } from "../../files/file-problem.js";
import { homeAt } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim-holder.js";
import { withHome } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { nonEmpty } from "../session/flags.js";
import {
  type OutputFlags,
  printable,
  printJson,
  printLine,
  report,
  withDryRun,
  withResult,
} from "../session/output.js";

type Flags = OutputFlags & { readonly home?: string; readonly tokenFile?: string; readonly dryRun?: true };

export function define(command: Command): void {
  command
    .description(
      "path prints the name of the token file; rotate writes a new token into it. The server reads the token only when " +
        "it starts, so rotate fails while it is running.",
    )
    .addArgument(new Argument("<action>").choices(["path", "rotate"]))
    .option("--token-file <file>", "the token file (STRONGROOM_TOKEN_FILE; token in the home)", nonEmpty);
  withResult(withHome(withDryRun(command))).action(token);
}

async function token(action: string, flags: Flags): Promise<void> {
  if (process.env["STRONGROOM_TOKEN"] && flags.tokenFile === undefined) {
    throw new CommandFailure(
      "usage",
      "the token comes from STRONGROOM_TOKEN, not from a file: change it there, or unset it",
    );
  }
  const home = homeAt(readOneSetting("home", flags.home, process.env));
  const file = readOneSetting("tokenFile", flags.tokenFile, process.env) ?? home.token;
  if (action === "rotate") return rotate(file, home.vault, flags);
  if (flags.dryRun) throw new CommandFailure("usage", "--dry-run applies only to rotate: path changes nothing");
  if (flags.json) printJson({ path: file });
  else printLine(file);
}

async function rotate(file: string, vaultPath: string, flags: Flags): Promise<void> {
  const holder = await findHolder(vaultPath);
  if (holder !== null) {
    const why = `a server is running with the old token (pid ${holder.pid}) and would reject the new one`;
    throw new CommandFailure("conflict", `${why}: stop it with  strongroom shutdown  and rotate again`);
  }
  await refuseOtherContent(file);
  if (flags.dryRun) return report(flags, { dryRun: true, path: file }, `a new token would be written to ${file}`);
  await writeNewToken(file).catch((error: unknown) => {
    throw unusable(file, "written", error);
  });
  report(flags, { path: file }, `a new token is in ${file}; start the server with  strongroom serve`);
}

/** The file's content is lost: it must be a token, or empty. @throws CommandFailure conflict, unexpected */
async function refuseOtherContent(file: string): Promise<void> {
  const text = await readIfThere(file).catch((error: unknown) => {
    throw unusable(file, "read", error);
  });
  const found = (text ?? "").trim();
  if (found === "" || isToken(found)) return;
  throw new CommandFailure(
    "conflict",
    `${printable(file)} does not hold a token: remove it first, or choose another file`,
  );
}

/** Returns null when there is no file but a directory for it. */
async function readIfThere(file: string): Promise<string | null> {
  const text = await missingAsNull(readFile(file, "utf8"));
  if (text === null) await stat(dirname(file));
  return text;
}

function unusable(file: string, what: "read" | "written", error: unknown): CommandFailure {
  const code = systemCode(error);
  if (code === undefined) throw error;
  return new CommandFailure("unexpected", `${printable(file)} cannot be ${what}${reasonOf(code)}`);
}
