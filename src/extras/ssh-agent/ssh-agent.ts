/**
 * `strongroom ssh-agent`: an agent for ssh and git whose keys are transit keys of the vault.
 * The server signs: the agent never has a private key, and holds a token that can sign and nothing else.
 * It runs in the background, in the foreground, or for as long as a command.
 */
import { type Command, Option } from "commander";
import { makeNarrowToken } from "../../cli/kit/agents/narrow-token.js";
import {
  type AgentFlags,
  type Approval,
  dayMs,
  defaultTtlMs,
  mustFindApproval,
  type SocketAgent,
  serveSocket,
  startInBackground,
} from "../../cli/kit/agents/socket-agent.js";
import { nonEmpty, positiveDuration } from "../../cli/kit/args/args.js";
import { clientEnvironment } from "../../cli/kit/args/start-settings.js";
import { withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, say } from "../../cli/kit/output.js";
import { canStart } from "../../cli/kit/programs/find-program.js";
import { holdingSignals, type Release } from "../../cli/kit/programs/held-signals.js";
import { withoutTokens } from "../../cli/kit/programs/without-tokens.js";
import { StrongroomClient, StrongroomError } from "../../client/client.js";
import { agentServer } from "./agent.js";
import { VaultKeys } from "./vault-keys.js";

/** `revoke`: ends the token, where this command made it. */
type SigningToken = { readonly token: string | undefined; readonly revoke: () => Promise<void> };

const agent: SocketAgent = {
  name: "ssh-agent",
  directory: "strongroom-ssh-",
  variables: (path, pid) => ({ SSH_AUTH_SOCK: path, SSH_AGENT_PID: String(pid) }),
};

const details = `
Without a command the agent goes to the background and prints what a shell
needs:
  eval "$(strongroom ssh-agent)"
With one, it runs for as long as the command:
  strongroom ssh-agent -- git push

The newest versions of ed25519, ecdsa-p256 and rsa keys are offered; ssh-add -l
lists them, and strongroom transit show NAME --ssh prints the line for
authorized_keys. Signatures are made in the server: the private keys stay there.

With the root token, the command makes a token that can only sign, and revokes
it when the command ends; in the background it expires after --ttl. Any other
token is used as it is. While the vault is locked, signing fails and ssh says
that the agent refused the operation: strongroom unlock, then try again.

--confirm asks before each signature, with the program in SSH_ASKPASS where a
display is there, otherwise on the terminal.`;

export function define(command: Command, io: Io): void {
  command
    .description("Serves transit keys to ssh, git and other clients of ssh-agent.")
    .usage("[flags] [-- command [arguments...]]")
    .argument("[command...]", "a command to run with the agent, after --")
    .option("--socket <path>", "the agent's socket; default: a new one in the runtime directory", nonEmpty)
    .option("--confirm", "ask before each signature")
    .option("--ttl <duration>", "how long the agent's token is valid; default: 12h", positiveDuration(365 * dayMs))
    .option("--foreground", "do not go to the background")
    .addOption(new Option("--detached").hideHelp())
    .addHelpText("after", details);
  withConnection(command)
    .passThroughOptions()
    .action((command, flags) => sshAgent(io, command, flags));
}

async function sshAgent(io: Io, command: readonly string[], flags: AgentFlags): Promise<void> {
  const approve = flags.confirm ? mustFindApproval(io, command, flags) : null;
  if (flags.detached) return serveAgent(io, command, flags, approve, given(io), (work) => work());
  if (command[0] !== undefined && !canStart(io, command[0])) return;
  await withClient(io, flags, (client) => client.listTransitKeys()); // asks for the passphrase, before signals wait
  await holdingSignals(io, async (release) => {
    const token = await signingToken(io, flags);
    if (command.length === 0 && !flags.foreground) await startDetached(io, flags, token, release);
    else await serveAgent(io, command, flags, approve, token, release);
  });
}

async function serveAgent(
  io: Io,
  command: readonly string[],
  flags: AgentFlags,
  approve: Approval | null,
  { token, revoke }: SigningToken,
  release: Release,
): Promise<void> {
  const environment = await clientEnvironment(io.env, flags.home);
  const client = new StrongroomClient({ ...place(flags), token, environment });
  const failed = (error: unknown) => {
    if (!flags.detached) say(io, `strongroom: ${failureText(error)}\n`);
  };
  try {
    await serveSocket(io, agent, agentServer(new VaultKeys(client, approve, failed)), command, flags, release);
  } finally {
    await client.close();
    await revoke();
  }
}

function failureText(error: unknown): string {
  if (error instanceof StrongroomError || error instanceof CommandFailure) return printable(error.message);
  return "the request of an ssh client failed";
}

function place({ home, address, cacert: certificateFile, timeout: timeoutMs }: AgentFlags) {
  return { home, address, certificateFile, timeoutMs };
}

/** The token from the environment, as the command in the background gets it. */
function given(io: Io): SigningToken {
  return { token: io.env["STRONGROOM_TOKEN"], revoke: async () => {} };
}

/** Makes a token that can only sign, where the current one can do everything. */
async function signingToken(io: Io, flags: AgentFlags): Promise<SigningToken> {
  return withClient(io, flags, async (client) => {
    const ttlSeconds = Math.ceil((flags.ttl ?? defaultTtlMs) / 1000);
    const made = await makeNarrowToken(client, "ssh-agent", { can: ["sign"], ttlSeconds });
    if (made === null) return given(io);
    const { name, token } = made;
    const revoke = async () => {
      await withClient(io, { ...flags, nonInteractive: true }, (root) => root.revokeToken(name)).catch(() => {});
    };
    return { token, revoke };
  });
}

/** The agent in the background keeps the token, unless it does not start. */
async function startDetached(io: Io, flags: AgentFlags, { token, revoke }: SigningToken, release: Release) {
  const { tokenFile, ...others } = flags;
  const own = token ?? io.env["STRONGROOM_TOKEN"];
  const env = own === undefined ? io.env : withToken(io, own);
  const place = own === undefined ? flags : others;
  try {
    await startInBackground(io, agent, place, env, flags.confirm ? ["--confirm"] : [], release);
  } catch (error) {
    await revoke();
    throw error;
  }
}

/** Returns the environment with the token, and without a file of another token. */
function withToken(io: Io, token: string): NodeJS.ProcessEnv {
  const { STRONGROOM_TOKEN_FILE: _, ...environment } = withoutTokens(io.env);
  return { ...environment, STRONGROOM_TOKEN: token };
}
