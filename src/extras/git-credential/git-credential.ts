/**
 * `strongroom git-credential`: gives git its passwords and tokens, and stores new ones.
 * It speaks git's protocol of credential helpers on standard input and output.
 * One secret is one user of one host, over https only.
 */
import { Argument, type Command } from "commander";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { eraseLogin, loginsIn, passwordOf, readHelperInput, segmentOf, storePassword } from "../../cli/kit/logins.js";
import { printable } from "../../cli/kit/output.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/server.js";
import type { StrongroomClient } from "../../client/client.js";

const details = `
git runs it; set it up once, for all repositories:
  git config --global credential.helper strongroom
The password of USER at HOST is the secret git/HOST/USER; with
credential.useHttpPath, git/HOST/REPOSITORY/USER. It is used only over https.
What git erases goes to the trash. A locked vault is never unlocked here: git
then asks on the terminal.`;

export function define(command: Command, io: Io): void {
  command
    .description("Gives git the passwords and tokens of its remotes, and stores new ones.")
    .addArgument(new Argument("<action>", "what git asks for: get, store or erase"))
    .addHelpText("after", details);
  withConnection(command).action((action, flags) => gitCredential(io, action, flags));
}

/** Values are of the input's bytes: the password is wiped with them. */
type Asked = ReadonlyMap<string, Buffer>;

async function gitCredential(io: Io, action: string, flags: ConnectionFlags): Promise<void> {
  const input = await readHelperInput(io);
  try {
    const asked = readAttributes(input);
    const host = asked.get("host")?.toString() ?? "";
    const act = actions.get(action);
    // Other actions are of later versions of git; a password is never sent in cleartext.
    if (act === undefined || asked.get("protocol")?.toString() !== "https" || host === "") return;
    await withClient(io, { ...flags, nonInteractive: true }, (client) => act(io, client, folderOf(host, asked), asked));
  } finally {
    input.fill(0);
  }
}

type Action = (io: Io, client: StrongroomClient, folder: string, asked: Asked) => Promise<void>;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["get", get],
  ["store", store],
  ["erase", erase],
]);

async function get(io: Io, client: StrongroomClient, folder: string, asked: Asked): Promise<void> {
  const logins = await loginsIn(client, folder, userIn(asked));
  const [login, another] = logins;
  if (another !== undefined) {
    const which = `several users have a password in ${folder}: set credential.username in git's configuration`;
    throw new CommandFailure("conflict", which);
  }
  const password = login === undefined ? null : await passwordOf(client, login);
  if (login === undefined || password === null) return;
  // DANGER: git would take what follows a line break for attributes of its own, such as another host.
  if (/[\n\r\0]/.test(login.user) || password.includes("\n") || password.includes(0)) {
    password.fill(0);
    throw new CommandFailure("usage", `${printable(login.path)} has a line break or NUL: git takes one line`);
  }
  const answer = Buffer.concat([Buffer.from(`username=${login.user}\npassword=`), password, Buffer.from("\n")]);
  await new Promise((resolve) => io.stdout.write(answer, resolve));
  for (const bytes of [password, answer]) bytes.fill(0);
}

async function store(_io: Io, client: StrongroomClient, folder: string, asked: Asked): Promise<void> {
  const [user, password] = [userIn(asked), asked.get("password")];
  if (user === null || password === undefined || password.length === 0) return;
  const place = `https://${asked.get("host")?.toString()}`;
  await storePassword(client, folder + segmentOf(user), password, `password of git for ${place}`);
}

async function erase(_io: Io, client: StrongroomClient, folder: string, asked: Asked): Promise<void> {
  for (const login of await loginsIn(client, folder, userIn(asked)))
    await eraseLogin(client, login, asked.get("password") ?? null);
}

function userIn(asked: Asked): string | null {
  const user = asked.get("username")?.toString() ?? "";
  return user === "" ? null : user;
}

/** Lines `name=value`; the last one of a name counts, and those with unknown names are ignored. */
function readAttributes(input: Buffer): Asked {
  const found = new Map<string, Buffer>();
  for (let start = 0; start < input.length; ) {
    const feed = input.indexOf(0x0a, start);
    const line = input.subarray(start, feed < 0 ? input.length : feed);
    const equals = line.indexOf(0x3d);
    if (equals > 0) found.set(line.toString("latin1", 0, equals), line.subarray(equals + 1));
    start = feed < 0 ? input.length : feed + 1;
  }
  return found;
}

function folderOf(host: string, asked: Asked): string {
  const repository =
    asked
      .get("path")
      ?.toString()
      .split("/")
      .filter((part) => part !== "") ?? [];
  return ["git", host.toLowerCase(), ...repository].map(segmentOf).join("/").concat("/");
}
