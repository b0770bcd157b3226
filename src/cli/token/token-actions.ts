/** Actions of `strongroom token` that a running server carries out. */
import { type NewToken, type StrongroomClient, StrongroomError, type Token } from "../../client/client.js";
import { type ConnectionFlags, withClient } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { localMinute } from "../session/local-time.js";
import { type OutputFlags, painter, printable, printJson, printLine, report } from "../session/output.js";
import { checkTarget, writeOut } from "../session/plaintext-file.js";

export type ServedFlags = OutputFlags &
  ConnectionFlags & {
    readonly path?: readonly string[];
    readonly can?: Token["can"];
    /** Milliseconds. */
    readonly ttl?: number;
    readonly overlap?: number;
    readonly output?: string;
    readonly force?: true;
    readonly dryRun?: true;
  };

export async function createToken(name: string, flags: ServedFlags): Promise<void> {
  const { path: paths, can, ttl, dryRun } = flags;
  await checkTarget(flags);
  if (dryRun) return report(flags, { dryRun: true, name }, `the token ${name} would be created: nothing was done`);
  const created = await withClient(flags, (client) =>
    client.tokens.create(name, { paths, can, ttlSeconds: secondsOf(ttl) }),
  );
  await deliver(created, flags, "created");
}

export async function rotateClientToken(name: string, flags: ServedFlags): Promise<void> {
  const { overlap, dryRun } = flags;
  await checkTarget(flags);
  if (dryRun) return report(flags, { dryRun: true, name }, `the token ${name} would get a new text: nothing was done`);
  const rotate = (client: StrongroomClient) =>
    ofToken(name, client.tokens.rotate(name, { overlapSeconds: secondsOf(overlap) }));
  await deliver(await withClient(flags, rotate), flags, "rotated");
}

/** The server has written the new text into its token file. */
export async function rotateRootToken(flags: ServedFlags): Promise<void> {
  const { overlap, dryRun } = flags;
  if (dryRun)
    return report(flags, { dryRun: true, name: "root" }, "the server would replace its token file: nothing was done");
  await withClient(flags, (client) => client.tokens.rotate("root", { overlapSeconds: secondsOf(overlap) }));
  report(flags, { name: "root" }, "the server has a new root token, and has written it into its token file");
}

export async function revokeToken(name: string, flags: ServedFlags): Promise<void> {
  if (flags.dryRun)
    return report(flags, { dryRun: true, name }, `the token ${name} would be revoked: nothing was done`);
  await withClient(flags, (client) => ofToken(name, client.tokens.revoke(name)));
  report(flags, { name }, `the token ${name} is revoked`);
}

/** @throws CommandFailure notFound, for a name that no token has */
async function ofToken<T>(name: string, request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    throw new CommandFailure("notFound", `there is no token ${printable(name)}: strongroom token ls  lists them`);
  }
}

export async function listTokens(flags: ServedFlags): Promise<void> {
  const { tokens } = await withClient(flags, (client) => client.tokens.list());
  if (flags.json) return printJson({ tokens });
  const width = Math.max(0, ...tokens.map(({ name }) => name.length));
  const paint = painter(process.stdout);
  for (const token of tokens) {
    const isOver = token.expiresAt !== null && Date.parse(token.expiresAt) <= Date.now();
    const used = token.lastUsedAt === null ? "never used" : `used ${localMinute(new Date(token.lastUsedAt))}`;
    const row = `${token.name.padEnd(width)}  ${scopeOf(token)}, ${endOf(token, isOver ? "expired" : "ends")}, ${used}`;
    process.stdout.write(`${isOver ? paint("red", row) : row}\n`);
  }
}

export async function showSelf(flags: ServedFlags): Promise<void> {
  const token = await withClient(flags, (client) => client.tokens.self());
  if (flags.json) printJson(token);
  else printLine(`${token.name}: ${scopeOf(token)}, ${endOf(token)}`);
}

/** Standard output has the text alone, or the file: what else is said goes to standard error. */
async function deliver(created: NewToken, flags: ServedFlags, what: string): Promise<void> {
  const { token, ok: _, ...shown } = created;
  const { output, json, quiet } = flags;
  if (output !== undefined) await writeOut([`${token}\n`], flags);
  const said = `the token ${created.name} is ${what}: ${scopeOf(created)}, ${endOf(created)}`;
  if (output !== undefined) return report(flags, { ...shown, output }, `${said}; it is in ${output}`);
  if (json) return printJson({ ok: true, token, ...shown });
  printLine(token);
  if (!quiet) process.stderr.write(`${said}; this text is shown once\n`);
}

function scopeOf({ can, paths }: Pick<Token, "can" | "paths">): string {
  const isFolder = (path: string) => path.endsWith("/");
  const folders = paths.filter(isFolder).map((path) => `in ${printable(path)}`);
  const secrets = paths.filter((path) => !isFolder(path)).map((path) => `of the secret ${printable(path)}`);
  return `can ${can.join(", ")} ${[...folders, ...secrets].join(" and ") || "everywhere"}`;
}

function endOf({ expiresAt }: Pick<Token, "expiresAt">, verb = "ends"): string {
  return expiresAt === null ? "never ends" : `${verb} ${localMinute(new Date(expiresAt))}`;
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}
