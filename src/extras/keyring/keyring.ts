/**
 * `strongroom keyring`: the Secret Service of desktops, for programs that keep their logins there.
 * The logins are secrets of the vault, under a prefix that its token alone may use.
 * It runs for as long as a command, in the foreground, in the background, or on the user's own session bus.
 */
import { type Command, Option } from "commander";
import { makeNarrowToken } from "../../cli/kit/agents/narrow-token.js";
import {
  type AgentFlags,
  askedFor,
  dayMs,
  defaultTtlMs,
  findAskpass,
  mustFindApproval,
  type SocketAgent,
  serveSocket,
  startInBackground,
  untilSignal,
  wipingServer,
} from "../../cli/kit/agents/socket-agent.js";
import { nonEmpty, onlyWith, positiveDuration } from "../../cli/kit/args/args.js";
import { mustBePath } from "../../cli/kit/args/paths.js";
import { clientEnvironment } from "../../cli/kit/args/start-settings.js";
import { unlockOnTerminal, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Bytes, Io } from "../../cli/kit/io.js";
import { say } from "../../cli/kit/output.js";
import { canStart } from "../../cli/kit/programs/find-program.js";
import { holdingSignals, type Release } from "../../cli/kit/programs/held-signals.js";
import { StrongroomClient, StrongroomError, type VaultStatus } from "../../client/client.js";
import { Bus } from "./bus.js";
import { VaultItems } from "./items.js";
import { SecretService } from "./service.js";
import { joinSessionBus } from "./session-bus.js";

type Flags = AgentFlags & {
  readonly confirmFor?: number;
  readonly session?: true;
  readonly replace?: true;
  readonly prefix: string;
};

const agent: SocketAgent = {
  name: "keyring",
  directory: "strongroom-keyring-",
  variables: (path, pid) => ({
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${escapedAddress(path)}`,
    STRONGROOM_KEYRING_PID: String(pid),
  }),
};

const details = `
With a command, programs in it find the vault where a desktop has its keyring:
  strongroom keyring -- gh auth login
Without one, the keyring goes to the background and prints what a shell needs:
  eval "$(strongroom keyring)"
--session serves the session bus that this user already has, in the foreground;
strongroom service install --keyring  does that from the next login on.

An item is a secret at keyring/login/ID: its value is the item's secret, and
strongroom describe shows its label and attributes. What a program deletes goes
to the trash.

With the root token, the command makes a token for the prefix alone. It is
revoked at the end, and ends within the hour after a kill -9; in the background
it expires after --ttl. Any other token is used as it is. While the vault is
locked, a program waits for 20 s, then gets the error IsLocked. Programs that
ask for an unlock are asked for the passphrase by SSH_ASKPASS where a display is
there, otherwise on the terminal.`;

export function define(command: Command, io: Io): void {
  command
    .description("Serves the vault as the keyring of programs that use the Secret Service (libsecret).")
    .usage("[flags] [-- command [arguments...]]")
    .argument("[command...]", "a command to run with the keyring, after --")
    .option("--socket <path>", "the bus's socket; default: a new one in the runtime directory", nonEmpty)
    .option("--prefix <folder>", "the folder of the items", "keyring")
    .option("--confirm", "ask before a value goes out")
    .option("--confirm-for <duration>", "ask once an item for so long", positiveDuration(365 * dayMs))
    .option(
      "--ttl <duration>",
      "how long the keyring's token is valid; default: 12h in the background, else 1h, then it is replaced",
      positiveDuration(365 * dayMs),
    )
    .option("--foreground", "do not go to the background")
    .addOption(new Option("--session", "serve this user's session bus").conflicts(["socket", "foreground"]))
    .option("--replace", "with --session: take the name from the program that has it")
    .addOption(new Option("--detached").hideHelp())
    .addHelpText("after", details);
  onlyWith(onlyWith(command, "replace", "session"), "confirmFor", "confirm");
  withConnection(command)
    .passThroughOptions()
    .action((command, flags) => keyring(io, command, flags));
}

async function keyring(io: Io, command: readonly string[], flags: Flags): Promise<void> {
  if (flags.session && command.length > 0)
    throw new CommandFailure("usage", "--session serves no command: use one of the two");
  const asking = { ...flags, ...(flags.session && { foreground: true as const }) };
  const approve = flags.confirm ? mustFindApproval(io, command, asking) : null;
  if (command[0] !== undefined && !canStart(io, command[0])) return;
  if (!flags.detached) await withClient(io, { ...flags, nonInteractive: true }, (client) => client.status());
  const isInBackground = command.length === 0 && !flags.foreground && !flags.session && !flags.detached;
  const serve = async (release: Release) => {
    if (isInBackground) return startInBackground(io, agent, flags, io.env, ownFlags(flags), release);
    const access = new KeyringAccess(await clientEnvironment(io.env, flags.home), flags);
    const items = new VaultItems(io, access, `${mustBePath(flags.prefix)}/`);
    const terminal = command.length > 0 || asking.foreground === true;
    const unlock = (signal: AbortSignal) => unlockAsUser(io, access.user, terminal, signal);
    const service = new SecretService(io, items, { unlock, approve, approvalMs: flags.confirmFor ?? 0 });
    const warm = () => items.warm();
    if (command.length === 0) warm();
    try {
      if (flags.session) await serveSessionBus(io, service, flags, release);
      else await serveBus(io, { service, warm }, command, flags, release);
    } finally {
      service.close();
      items.close();
      await access.close();
    }
  };
  if (flags.detached) return serve((work) => work());
  await holdingSignals(io, serve);
}

/** A command that does not use its keyring makes no token: `warm` is called with the first connection. */
async function serveBus(
  io: Io,
  { service, warm }: { readonly service: SecretService; readonly warm: () => void },
  command: readonly string[],
  flags: Flags,
  release: Release,
): Promise<void> {
  const bus = new Bus(service);
  const server = wipingServer((socket) => bus.accept(socket)).once("connection", warm);
  try {
    await serveSocket(io, agent, server, command, flags, release);
  } finally {
    bus.close();
  }
}

async function serveSessionBus(io: Io, service: SecretService, flags: Flags, release: Release): Promise<void> {
  const link = await joinSessionBus(io, service, flags.replace === true);
  try {
    if (!flags.quiet) say(io, `strongroom: serving ${service.name} on the session bus\n`);
    const isTaken = await release(() => Promise.race([link.ended.then(() => true), untilSignal(io).then(() => false)]));
    if (isTaken)
      throw new CommandFailure("conflict", "another program has taken the name, or the session bus has ended");
  } finally {
    link.close();
  }
}

function ownFlags({ confirm, confirmFor, ttl, prefix }: Flags): string[] {
  return [
    ...["--prefix", prefix],
    ...(confirm ? ["--confirm"] : []),
    ...(confirmFor === undefined ? [] : ["--confirm-for", `${confirmFor}ms`]),
    ...(ttl === undefined ? [] : ["--ttl", `${ttl}ms`]),
  ];
}

/** D-Bus addresses escape like URLs. */
function escapedAddress(path: string): string {
  return path.replace(/[^-0-9A-Za-z_/.]/gu, (character) =>
    Buffer.from(character).toString("hex").replace(/../g, "%$&"),
  );
}

/** Clients of the vault: the user's, and one with a token for the prefix, made once the vault is unlocked. */
class KeyringAccess {
  readonly user: StrongroomClient;
  readonly #flags: Flags;
  readonly #place: {
    readonly home?: string | undefined;
    readonly environment: Readonly<Record<string, string | undefined>>;
  };
  #own: Promise<{ readonly client: StrongroomClient; readonly revoke: () => Promise<void> }> | null = null;

  constructor(environment: Readonly<Record<string, string | undefined>>, flags: Flags) {
    const { home, address, tokenFile, cacert: certificateFile, timeout: timeoutMs } = flags;
    this.#flags = flags;
    const place = { home, address, certificateFile, timeoutMs, environment };
    this.#place = place;
    this.user = new StrongroomClient({ ...place, tokenFile });
  }

  readonly status = (): Promise<VaultStatus> => this.user.status();

  /** In the background, the keyring ends with its token; otherwise it makes another one. */
  readonly client = async (hasEnded: boolean): Promise<StrongroomClient> => {
    if (hasEnded && !this.#flags.detached) await this.#drop();
    this.#own ??= this.#open();
    try {
      return (await this.#own).client;
    } catch (error) {
      this.#own = null;
      throw error;
    }
  };

  async close(): Promise<void> {
    const own = await this.#own?.catch(() => null);
    if (!this.#flags.detached) await own?.revoke();
    await own?.client.close();
    await this.user.close();
  }

  async #drop(): Promise<void> {
    await (await this.#own?.catch(() => null))?.client.close();
    this.#own = null;
  }

  async #open() {
    const { ttl, detached } = this.#flags;
    const ttlSeconds = Math.ceil((ttl ?? (detached ? defaultTtlMs : renewedTtlMs)) / 1000);
    const paths = [`${mustBePath(this.#flags.prefix)}/`];
    const rights = { can: ["list", "get", "put", "delete"], paths, ttlSeconds } as const;
    const made = await makeNarrowToken(this.user, "keyring", rights);
    if (made === null) return { client: this.user, revoke: async () => {} };
    const { name, token } = made;
    const revoke = async () => void (await this.user.revokeToken(name).catch(() => {}));
    return { client: new StrongroomClient({ ...this.#place, token }), revoke };
  }
}

/** How long the token stays where the process is killed before it can revoke it. */
const renewedTtlMs = 3_600_000;

const question = "Passphrase of the vault, for a program that uses the keyring: ";
const tries = 3;

/** Returns false where the user declined; where nothing can ask, an unlock elsewhere is waited for. */
async function unlockAsUser(
  io: Io,
  client: StrongroomClient,
  hasTerminal: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const askpass = findAskpass(io);
  if (askpass === null) return hasTerminal ? isDone(unlockOnTerminal(io, client, question)) : true;
  for (let left = tries; left > 0; left--) {
    const passphrase = await askedFor(askpass, question, signal);
    if (passphrase === null) return false;
    if (await isUnlockedBy(client, passphrase)) return true;
  }
  return false;
}

/** Returns false for a wrong passphrase, which is wiped in any case. */
async function isUnlockedBy(client: StrongroomClient, passphrase: Bytes): Promise<boolean> {
  try {
    await client.unlock(passphrase);
    return true;
  } catch (error) {
    if (error instanceof StrongroomError && error.credential === "passphrase") return false;
    throw error;
  } finally {
    passphrase.fill(0);
  }
}

async function isDone(unlocked: Promise<unknown>): Promise<boolean> {
  return unlocked.then(
    () => true,
    () => false,
  );
}
