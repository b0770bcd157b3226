/** Owns `strongroom token`: where the bearer token is, and how it is replaced. */
import { Argument, type Command } from "commander";
import { readOneSetting } from "../config/settings.js";
import { homeAt } from "../server/home.js";
import { writeNewToken } from "../server/token.js";
import { findHolder } from "../storage/holder.js";
import { withHome } from "./connection.js";
import { CommandFailure } from "./exit-codes.js";
import { type OutputFlags, printJson, printLine, report, withDryRun, withResult } from "./output.js";

type Flags = OutputFlags & { readonly home?: string; readonly tokenFile?: string; readonly dryRun?: true };

export function define(command: Command): void {
  command
    .description(
      "path prints the file that holds the bearer token; rotate writes a new token into it. The server reads the token\n" +
        "when it starts, so that rotate refuses while it runs.",
    )
    .addArgument(new Argument("<action>").choices(["path", "rotate"]))
    .option("--token-file <file>", "another file than token in the home (STRONGROOM_TOKEN_FILE)");
  withResult(withHome(withDryRun(command))).action(token);
}

async function token(action: string, flags: Flags): Promise<void> {
  if (process.env["STRONGROOM_TOKEN"] && flags.tokenFile === undefined) {
    throw new CommandFailure("usage", "the token is in STRONGROOM_TOKEN and in no file: change it there, or unset it");
  }
  const home = homeAt(readOneSetting("home", flags.home, process.env));
  const file = readOneSetting("tokenFile", flags.tokenFile, process.env) ?? home.token;
  if (action === "rotate") return rotate(file, home.vault, flags);
  if (flags.json) printJson({ path: file });
  else printLine(file);
}

async function rotate(file: string, vaultPath: string, flags: Flags): Promise<void> {
  const holder = await findHolder(vaultPath);
  if (holder !== null) {
    const why = `a server runs with the old token (pid ${holder.pid}), which would then refuse every command`;
    throw new CommandFailure("conflict", `${why}: stop it with  strongroom shutdown  and rotate again`);
  }
  if (flags.dryRun) return report(flags, { dryRun: true, path: file }, `a new token would be written to ${file}`);
  await writeNewToken(file);
  report(flags, { path: file }, `a new token is in ${file}; start the server with  strongroom serve`);
}
