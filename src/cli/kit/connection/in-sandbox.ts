/** Whether this command runs in the sandbox of `agent run`, where the vault is out of reach. */
import { existsSync } from "node:fs";
import type { StrongroomError } from "../../../client/client.js";
import { CommandFailure } from "../errors.js";

/** Only the sandbox and root can write its directory. */
export const sandboxMark = "/run/strongroom-sandbox";

/** Errors of a command there, which has no home, no socket, no token, and no network. */
const outOfReach = ["UNREACHABLE", "UNAUTHORIZED", "UNTRUSTED_HOME", "UNTRUSTED_CERTIFICATE", "TIMEOUT"];

/** Returns the failure of a command that looked for the vault in the sandbox, else null. */
export function sandboxFailure({ code }: StrongroomError): CommandFailure | null {
  if (!outOfReach.includes(code) || !existsSync(sandboxMark)) return null;
  const remedy = "send requests through the proxy in HTTPS_PROXY, or run this command outside of the sandbox";
  return new CommandFailure(
    "unreachable",
    `the vault is out of reach in the sandbox of strongroom agent run: ${remedy}`,
  );
}
