/** Owns the help text of `strongroom serve`, made from the table of settings. */
import { definitions } from "../../config/definitions.js";

export function serveHelp(): string {
  const rows = Object.values(definitions).map(({ flag, variable, meaning, shownDefault }) => {
    const spelled = flag === null ? variable : `--${flag} VALUE, ${variable}`;
    return `  ${spelled}\n      ${meaning}\n      default: ${shownDefault}\n`;
  });
  return `usage: strongroom serve [flags]

Starts the vault server. Once it listens it prints one line with its address and
where token, certificate and vault are. SIGINT, SIGTERM and POST /v1/shutdown
lock the vault and stop it. Logs go to standard error, one line of JSON each.

settings (a flag goes before its environment variable):
${rows.join("")}
exit codes: 0 stopped as asked, 1 could not start or failed, 2 a setting or the
command is not valid
`;
}
