/**
 * `strongroom git-credential`: gives git its passwords and tokens, and stores new ones.
 * It speaks git's protocol of credential helpers on standard input and output.
 * One secret is one user of one host, over https only.
 */
import { isUtf8 } from "node:buffer";
import { Argument, type Command } from "commander";
import {
  encodeSegment,
  eraseLogin,
  type Login,
  loginsIn,
  readHelperInput,
  readPassword,
  storePassword,
} from "../../cli/kit/connection/logins.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import type { StrongroomClient } from "../../client/client.js";

const details = `
git runs it; set it up once, for all repositories:
  git config --global credential.helper strongroom
The password of USER at HOST is the secret git/HOST/USER; with
credential.useHttpPath, git/HOST/REPOSITORY/USER. It is used only over https.
A time at which the password expires is kept with it, and an OAuth refresh token
in git/HOST/USER/+oauth_refresh_token. What git erases goes to the trash. A
locked vault is never unlocked here: git then asks on the terminal.`;

export function define(command: Command, io: Io): void {
  command
    .description("Gives git the passwords and tokens of its remotes, and stores new ones.")
    .addArgument(new Argument("<action>", "what git asks for: get, store or erase"))
    .addHelpText("after", details);
  withConnection(command).action((action, flags) => gitCredential(io, action, flags));
}

/** Limit of git's protocol, in bytes with the line break. */
const mostInLine = 65_535;
const lineLimit = "its protocol allows 65,535 bytes in a line";

/** These become parts of a path: two that are not UTF-8 could become the same. */
const inPath = ["protocol", "host", "path", "username"];

/** Values are of the input's bytes: the password is wiped with them. */
type Asked = ReadonlyMap<string, Buffer>;

async function gitCredential(io: Io, action: string, flags: ConnectionFlags): Promise<void> {
  const input = await readHelperInput(io, hasBlankLine);
  try {
    const act = actions.get(action);
    if (act === undefined) return; // an action that only later versions of git know
    const asked = readAttributes(input);
    const unreadable = inPath.find((name) => !isUtf8(asked.get(name) ?? Buffer.alloc(0)));
    if (unreadable !== undefined) throw new CommandFailure("usage", `the ${unreadable} is not UTF-8`);
    const host = asked.get("host")?.toString() ?? "";
    // A password is never sent in cleartext.
    if (asked.get("protocol")?.toString() !== "https" || host === "") return;
    await withClient(io, { ...flags, nonInteractive: true }, (client) =>
      act(io, client, hostFolder(host, asked), asked),
    );
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
  const secret = login === undefined ? undefined : await client.getOrUndefined(login.path);
  if (login === undefined || secret === undefined) return;
  const password = Buffer.from(secret.revealBytes());
  // DANGER: git would take what follows a line break for attributes of its own, such as another host.
  if (/[\n\r\0]/.test(login.user) || password.includes("\n") || password.includes(0)) {
    password.fill(0);
    throw new CommandFailure("usage", `${printable(login.path)} has a line break or NUL: git takes one line`);
  }
  if (password.length > mostInLine - "password=\n".length) {
    password.fill(0);
    throw new CommandFailure("usage", `${printable(login.path)} is too long for git: ${lineLimit}`);
  }
  const { expiresAt } = secret.metadata;
  const expiry = expiresAt === undefined ? "" : `password_expiry_utc=${Math.floor(Date.parse(expiresAt) / 1000)}\n`;
  const refresh = await readPassword(client, refreshTokenLogin(login.path));
  const answer = Buffer.concat([
    Buffer.from(`username=${login.user}\npassword=`),
    password,
    Buffer.from(`\n${expiry}`),
    ...(refresh === null || /[\n\r\0]/.test(refresh.toString("latin1"))
      ? []
      : [Buffer.from(`${refreshToken}=`), refresh, Buffer.from("\n")]),
  ]);
  await new Promise((resolve) => io.stdout.write(answer, resolve));
  for (const bytes of [password, refresh, answer]) bytes?.fill(0);
}

async function store(_io: Io, client: StrongroomClient, folder: string, asked: Asked): Promise<void> {
  const [user, password] = [userIn(asked), asked.get("password")];
  if (user === null || password === undefined || password.length === 0) return;
  if (!isFalse.test(asked.get("ephemeral")?.toString() ?? "")) return; // for this operation alone
  if (password.includes(0)) throw new CommandFailure("usage", "the password has NUL, which git cannot take back");
  const place = `https://${asked.get("host")?.toString()}`;
  const path = folder + encodeSegment(user);
  await storePassword(client, path, password, `password of git for ${place}`, expiryIn(asked));
  const refresh = asked.get(refreshToken);
  if (refresh === undefined || refresh.length === 0) return;
  await storePassword(client, refreshTokenLogin(path).path, refresh, `OAuth refresh token of git for ${place}`);
}

/** Git's spellings of false; every other number is true. */
const isFalse = /^(?:0*|false|no|off)$/i;

const refreshToken = "oauth_refresh_token";

/** Not the path of any login: `encodeSegment` encodes a plus sign. */
function refreshTokenLogin(path: string): Login {
  return { path: `${path}/+${refreshToken}`, user: "" };
}

/** Returns null without a time that a date can hold; 0 is none for git. */
function expiryIn(asked: Asked): string | null {
  const seconds = asked.get("password_expiry_utc")?.toString() ?? "";
  return /^\d{1,11}$/.test(seconds) && Number(seconds) > 0 ? new Date(Number(seconds) * 1000).toISOString() : null;
}

async function erase(_io: Io, client: StrongroomClient, folder: string, asked: Asked): Promise<void> {
  for (const login of await loginsIn(client, folder, userIn(asked))) {
    await eraseLogin(client, login, asked.get("password") ?? null);
    const refresh = refreshTokenLogin(login.path);
    const isErased = (await client.getOrUndefined(login.path)) === undefined;
    if (isErased && (await client.getOrUndefined(refresh.path)) !== undefined) await client.trash(refresh.path);
  }
}

function userIn(asked: Asked): string | null {
  const user = asked.get("username")?.toString() ?? "";
  return user === "" ? null : user;
}

/** Git may keep the pipe open after the blank line that ends its attributes. */
function hasBlankLine(read: Uint8Array): boolean {
  return /(?:^|\n)\r?\n/.test(Buffer.from(read.buffer, read.byteOffset, read.length).toString("latin1"));
}

/**
 * Reads lines `name=value` up to a blank one, as git does: the last one of a name counts, and unknown names are ignored.
 * @throws CommandFailure usage
 */
function readAttributes(input: Buffer): Asked {
  const found = new Map<string, Buffer>();
  for (let start = 0, count = 1; start < input.length; count++) {
    const feed = input.indexOf(0x0a, start);
    const end = feed < 0 ? input.length : feed;
    const line = input.subarray(start, input[end - 1] === 0x0d ? Math.max(start, end - 1) : end);
    if (line.length === 0) break;
    const equals = checkLine(line, count);
    if (equals > 0) found.set(line.toString("latin1", 0, equals), line.subarray(equals + 1));
    start = end + 1;
  }
  return found;
}

/** Returns where the name ends. */
function checkLine(line: Buffer, count: number): number {
  if (line.length >= mostInLine) throw new CommandFailure("usage", `line ${count} is too long: ${lineLimit}`);
  const equals = line.indexOf("=");
  if (equals < 0) throw new CommandFailure("usage", `line ${count} has no =`);
  return equals;
}

function hostFolder(host: string, asked: Asked): string {
  const repository =
    asked
      .get("path")
      ?.toString()
      .split("/")
      .filter((part) => part !== "") ?? [];
  return ["git", host.toLowerCase(), ...repository].map(encodeSegment).join("/").concat("/");
}
