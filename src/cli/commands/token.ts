/** Owns `strongroom token`: where the bearer token is, and how it is replaced. */
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
      "path prints the file that holds the bearer token; rotate writes a new token into it. The server reads the token " +
        "when it starts, so that rotate refuses while it runs.",
    )
    .addArgument(new Argument("<action>").choices(["path", "rotate"]))
    .option("--token-file <file>", "another file than token in the home (STRONGROOM_TOKEN_FILE)", nonEmpty);
  withResult(withHome(withDryRun(command))).action(token);
}

async function token(action: string, flags: Flags): Promise<void> {
  if (process.env["STRONGROOM_TOKEN"] && flags.tokenFile === undefined) {
    throw new CommandFailure("usage", "the token is in STRONGROOM_TOKEN and in no file: change it there, or unset it");
  }
  const home = homeAt(readOneSetting("home", flags.home, process.env));
  const file = readOneSetting("tokenFile", flags.tokenFile, process.env) ?? home.token;
  if (action === "rotate") return rotate(file, home.vault, flags);
  if (flags.dryRun) throw new CommandFailure("usage", "--dry-run is for rotate: path changes nothing");
  if (flags.json) printJson({ path: file });
  else printLine(file);
}

async function rotate(file: string, vaultPath: string, flags: Flags): Promise<void> {
  const holder = await findHolder(vaultPath);
  if (holder !== null) {
    const why = `a server runs with the old token (pid ${holder.pid}), which would then refuse every command`;
    throw new CommandFailure("conflict", `${why}: stop it with  strongroom shutdown  and rotate again`);
  }
  await refuseOthers(file);
  if (flags.dryRun) return report(flags, { dryRun: true, path: file }, `a new token would be written to ${file}`);
  await writeNewToken(file).catch((error: unknown) => {
    throw unusable(file, "written", error);
  });
  report(flags, { path: file }, `a new token is in ${file}; start the server with  strongroom serve`);
}

/** What is in the file is lost: it must be a token, or nothing. @throws CommandFailure conflict, unexpected */
async function refuseOthers(file: string): Promise<void> {
  const text = await readIfThere(file).catch((error: unknown) => {
    throw unusable(file, "read", error);
  });
  const found = (text ?? "").trim();
  if (found === "" || isToken(found)) return;
  throw new CommandFailure(
    "conflict",
    `${printable(file)} does not hold a token: remove it first, or name another file`,
  );
}

/** Null when there is no file, but a directory for one. */
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
