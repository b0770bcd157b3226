/** `strongroom token`: client tokens, and the root token's file and its replacement. */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Argument, type Command } from "commander";
import { writeNewToken } from "../../access/root-token.js";
import { type NewToken, type StrongroomClient, StrongroomError, type Token } from "../../client/client.js";
import { duration, isToken, Problem } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { scopes } from "../../contract/names.js";
import { systemCode } from "../../errors.js";
import { missingAsNull } from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { homeAt } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim.js";
import { EarlierOption, nonEmpty, onlyForActions, onlyWith, RepeatableOption, suggestion } from "../kit/args/args.js";
import { canonicalPath, scopePaths } from "../kit/args/paths.js";
import { settingsFileIn } from "../kit/args/start-settings.js";
import { type ConnectionFlags, namesServer, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { checkTarget, writeOut } from "../kit/output/output-file.js";
import {
  localMinute,
  type OutputFlags,
  painter,
  printable,
  printJson,
  printLine,
  printRows,
  report,
  say,
  sayIfEmpty,
  withDryRun,
  withResult,
} from "../kit/output.js";

/** Whether each action takes a name. A rotation without one is the root token's. */
const actions = {
  create: "needed",
  ls: "none",
  revoke: "needed",
  rotate: "optional",
  whoami: "none",
  path: "none",
} as const;

type Action = keyof typeof actions;

const takenBy: { readonly [F in keyof ServedFlags]?: readonly Action[] } = {
  path: ["create"],
  can: ["create"],
  ttl: ["create"],
  overlap: ["rotate"],
  output: ["create", "rotate"],
  dryRun: ["create", "revoke", "rotate"],
};

const yearMs = 365 * 24 * 3600 * 1000;

export function define(command: Command, io: Io): void {
  command
    .description(
      "Client tokens give access to a part of the vault: create prints a new one, ls lists them, revoke ends one at once, " +
        "rotate issues a new value; whoami shows the current token. path prints the name of the root token's file; rotate " +
        "without a name replaces the root token, on a running server or in its file.",
    )
    .addArgument(new Argument("<action>", "what to do with tokens").choices(Object.keys(actions)))
    .argument("[name]", "the client token's name")
    .addOption(
      new RepeatableOption(
        "--path <path>",
        "create: a secret, or a subtree if it ends in a slash; may be repeated; default: all",
      ).argParser(readPaths),
    )
    .option("--can <scopes>", `create: some of ${scopes.join(", ")}, with commas; default: list,get`, readScopes)
    .option("--ttl <duration>", "create: how long it is valid; 0 never expires; default: 90d", duration(100 * yearMs))
    .option(
      "--overlap <duration>",
      "rotate: grace period for the old value, such as 1h; default: 0",
      duration(30 * 24 * 3600 * 1000),
    )
    .option("-o, --output <file>", "create, rotate: write the token into a new file (0600)", nonEmpty)
    .option("--overwrite", "replace the output file if it exists")
    .addOption(new EarlierOption("--force", "overwrite"))
    .option("--token-file <file>", "the file of the token to use (STRONGROOM_TOKEN_FILE; token in the home)", nonEmpty);
  onlyWith(command, "overwrite", "output");
  onlyForActions(withResult(withConnection(withDryRun(command))), takenBy).action((action, name, flags) =>
    token(io, action, name, flags),
  );
}

function readPaths(path: string, before: readonly string[] = []): string[] {
  if (path === "/") return [...before, path];
  const secret = path.startsWith("/") ? path : path.replace(/\/$/, ""); // a leading slash is reported with the whole path
  canonicalPath(secret, path === "" ? "" : `--path ${printable(path)}`);
  return [...before, path.normalize("NFC")];
}

function readScopes(text: string): string[] {
  const given = text.split(",").map((scope) => scope.trim());
  const wrong = given.find((scope) => !scopes.some((known) => known === scope));
  if (wrong === undefined) return given;
  throw new Problem(`one or more of ${scopes.join(", ")}, separated by commas${suggestion(wrong, scopes)}`);
}

async function token(io: Io, action: Action, name: string | undefined, flags: ServedFlags): Promise<void> {
  checkName(action, name);
  if (action === "create" && name !== undefined) return createToken(io, name, flags);
  if (action === "revoke" && name !== undefined) return revokeToken(io, name, flags);
  if (action === "rotate" && name !== undefined) return rotateClientToken(io, name, flags);
  if (action === "ls") return listTokens(io, flags);
  if (action === "whoami") return showSelf(io, flags);
  return rootToken(io, action, flags);
}

function checkName(action: Action, name: string | undefined): void {
  const wanted = actions[action];
  if (wanted === "needed" && name === undefined) throw usage(`${action} needs the token's name`);
  if (wanted === "none" && name !== undefined) throw usage(`${action} takes no name`);
}

function usage(problem: string): CommandFailure {
  return new CommandFailure("usage", `${problem}: strongroom token --help shows more`);
}

/** The root token: its file, and a rotation by the server that has it, or in the file. */
async function rootToken(io: Io, action: Action, flags: ServedFlags): Promise<void> {
  if (io.env["STRONGROOM_TOKEN"] && flags.tokenFile === undefined) {
    throw new CommandFailure(
      "usage",
      "the token comes from STRONGROOM_TOKEN, not from a file: change it there, or unset it",
    );
  }
  const home = homeAt(readOneSetting("home", flags.home, io.env));
  const file = readOneSetting("tokenFile", flags.tokenFile, io.env, await settingsFileIn(home.path)) ?? home.token;
  if (action === "path") return flags.json ? printJson(io, { path: file }) : printLine(io, file);
  if (flags.output !== undefined) throw usage("-o has no effect on the root token, which is in its file");
  if (namesServer(io, flags) || (await findHolder(home.vault)) !== null) return rotateRootToken(io, flags);
  if (flags.overlap !== undefined) throw usage("--overlap needs a running server");
  await rotateFile(io, file, flags);
}

async function rotateFile(io: Io, file: string, flags: ServedFlags): Promise<void> {
  await refuseOtherContent(file);
  if (flags.dryRun) return report(io, flags, { dryRun: true, path: file }, `a new token would be written to ${file}`);
  await writeNewToken(file).catch((error: unknown) => {
    throw unusable(file, "written", error);
  });
  report(io, flags, { path: file }, `a new token is in ${file}; start the server with  strongroom serve`);
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
  return new CommandFailure("unexpected", `${printable(file)} cannot be ${what}${failureReason(code)}`);
}

type ServedFlags = OutputFlags &
  ConnectionFlags & {
    readonly path?: readonly string[];
    readonly can?: Token["can"];
    /** Milliseconds. */
    readonly ttl?: number;
    readonly overlap?: number;
    readonly output?: string;
    readonly overwrite?: true;
    readonly dryRun?: true;
  };

async function createToken(io: Io, name: string, flags: ServedFlags): Promise<void> {
  const { path: paths, can, ttl, dryRun } = flags;
  await checkTarget(flags);
  if (dryRun) return report(io, flags, { dryRun: true, name }, `the token ${name} would be created: nothing was done`);
  const created = await withClient(io, flags, (client) =>
    client.tokens.create(name, { paths: paths && scopePaths(paths), can, ttlSeconds: wholeSeconds(ttl) }),
  );
  await deliver(io, created, flags, "created");
}

async function rotateClientToken(io: Io, name: string, flags: ServedFlags): Promise<void> {
  const { overlap, dryRun } = flags;
  await checkTarget(flags);
  if (dryRun)
    return report(io, flags, { dryRun: true, name }, `the token ${name} would get a new value: nothing was done`);
  const rotate = (client: StrongroomClient) =>
    ofToken(name, client.tokens.rotate(name, { overlapSeconds: wholeSeconds(overlap) }));
  await deliver(io, await withClient(io, flags, rotate), flags, "rotated");
}

/** The server has written the new value into its token file. */
async function rotateRootToken(io: Io, flags: ServedFlags): Promise<void> {
  const { overlap, dryRun } = flags;
  if (dryRun)
    return report(
      io,
      flags,
      { dryRun: true, name: "root" },
      "the server would replace its token file: nothing was done",
    );
  await withClient(io, flags, (client) => client.tokens.rotate("root", { overlapSeconds: wholeSeconds(overlap) }));
  report(io, flags, { name: "root" }, "the server has a new root token, and has written it into its token file");
}

async function revokeToken(io: Io, name: string, flags: ServedFlags): Promise<void> {
  if (flags.dryRun)
    return report(io, flags, { dryRun: true, name }, `the token ${name} would be revoked: nothing was done`);
  await withClient(io, flags, (client) => ofToken(name, client.tokens.revoke(name)));
  report(io, flags, { name }, `the token ${name} is revoked`);
}

/** @throws CommandFailure notFound, for a name that no token has */
async function ofToken<T>(name: string, request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    throw new CommandFailure("notFound", `no token named ${printable(name)}: strongroom token ls  lists them`);
  }
}

async function listTokens(io: Io, flags: ServedFlags): Promise<void> {
  const { tokens } = await withClient(io, flags, (client) => client.tokens.list());
  if (flags.json) return printJson(io, { tokens });
  const width = Math.max(0, ...tokens.map(({ name }) => name.length));
  const paint = painter(io);
  for (const token of tokens) {
    const isOver = token.expiresAt !== null && Date.parse(token.expiresAt) <= io.clock.now();
    const used = token.lastUsedAt === null ? "never used" : `used ${localMinute(new Date(token.lastUsedAt))}`;
    const parent = token.parent === undefined ? "" : `, child of ${token.parent}`;
    const end = formatExpiry(token, isOver ? "expired" : "ends");
    const row = `${token.name.padEnd(width)}  ${formatScope(token)}, ${end}, ${used}${parent}`;
    printRows(io, `${isOver ? paint("red", row) : row}\n`);
  }
  sayIfEmpty(io, tokens.length, "no client tokens: strongroom token create  makes one", flags);
}

async function showSelf(io: Io, flags: ServedFlags): Promise<void> {
  const token = await withClient(io, flags, (client) => client.tokens.self());
  if (flags.json) printJson(io, token);
  else printRows(io, `${token.name}: ${formatScope(token)}, ${formatExpiry(token)}\n`);
}

/** Prints only the token's value on standard output, or writes it to the file; everything else goes to standard error. */
async function deliver(io: Io, created: NewToken, flags: ServedFlags, what: string): Promise<void> {
  const { token, ok: _, ...shown } = created;
  const { output, json, quiet } = flags;
  if (output !== undefined) await writeOut(io, [`${token}\n`], flags);
  const said = `the token ${created.name} is ${what}: ${formatScope(created)}, ${formatExpiry(created)}`;
  if (output !== undefined) return report(io, flags, { ...shown, output }, `${said}; it is in ${output}`);
  if (json) return printJson(io, { ok: true, token, ...shown });
  printLine(io, token);
  if (!quiet) say(io, `${said}; this value is shown once\n`);
}

function formatScope({ can, paths }: Pick<Token, "can" | "paths">): string {
  const isFolder = (path: string) => path.endsWith("/");
  const folders = paths.filter(isFolder).map((path) => `in ${printable(path)}`);
  const secrets = paths.filter((path) => !isFolder(path)).map((path) => `of the secret ${printable(path)}`);
  if (can.length === 0) return "can do nothing";
  return `can ${can.join(", ")} ${[...folders, ...secrets].join(" and ") || "everywhere"}`;
}

function formatExpiry({ expiresAt }: Pick<Token, "expiresAt">, verb = "ends"): string {
  return expiresAt === null ? "never ends" : `${verb} ${localMinute(new Date(expiresAt))}`;
}

function wholeSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}
