/** The database's password: from a file of its own, or from one in the format of libpq's `.pgpass`. */
import { readFile, stat } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { StartError, systemCode } from "../../errors.js";
import { quoted } from "../../files/home.js";
import type { ConnectionTarget } from "./connection-url.js";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the password; undefined when there is none. `named`: a file that holds only the password.
 * @throws StartError when a file cannot be read, or other users can access it.
 */
export async function findPassword(
  target: ConnectionTarget,
  named: string | null,
  environment: Environment = process.env,
): Promise<string | undefined> {
  if (named !== null) return (await mustRead(named)).replace(/\r?\n$/, "");
  const chosen = environment["PGPASSFILE"];
  if (chosen) return passwordIn(await mustRead(chosen), target);
  const text = await readIfThere(join(homedir(), ".pgpass"));
  return text === null ? undefined : passwordIn(text, target);
}

/** Returns the password for a connection. @throws StartError when there is none, and the database asks for one */
export type Password = () => Promise<string>;

/**
 * Reads the password now and again for each connection: a new one needs no restart, and a file that cannot be read any more
 * leaves the last one. @throws StartError as `findPassword`
 */
export async function openPassword(target: ConnectionTarget, named: string | null): Promise<Password> {
  let last = await findPassword(target, named);
  return async () => {
    last = (await findPassword(target, named).catch(() => undefined)) ?? last;
    const password = last ?? process.env["PGPASSWORD"]; // as libpq
    if (password === undefined) throw new StartError(noPassword);
    return password;
  };
}

const noPassword =
  "the database asks for a password: name a file that holds it with --store-password-file, or add a line to ~/.pgpass";

const field = "((?:[^\\\\:]|\\\\.)*)";

/** host:port:database:user:password, with colons and backslashes escaped by a backslash. */
const linePattern = new RegExp(`^${field}:${field}:${field}:${field}:(.*)$`);

/** Returns the password of the first matching line. */
function passwordIn(text: string, target: ConnectionTarget): string | undefined {
  const { host, port, database, user = userInfo().username } = target;
  const hosts = host.startsWith("/") ? [host, "localhost"] : [host]; // libpq's name for a Unix socket
  const wanted = [hosts, [`${port}`], [database], [user]];
  for (const line of text.split(/\r?\n/)) {
    const [, ...fields] = line.startsWith("#") ? [] : (linePattern.exec(line) ?? []);
    const texts = fields.map((each) => each.replace(/\\(.)/g, "$1"));
    if (fields.length > 0 && wanted.every((each, at) => ["*", ...each].includes(texts[at] ?? ""))) return texts[4];
  }
  return undefined;
}

async function mustRead(file: string): Promise<string> {
  const text = await readIfThere(file);
  if (text === null) throw new StartError(`the password file ${file} is missing: create it, or correct the setting`);
  return text;
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    const { mode } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new StartError(`other users can access ${file}: run  chmod 600 ${quoted(file)}  and start again`);
    }
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof StartError) throw error;
    if (systemCode(error) === "ENOENT") return null;
    throw new StartError(`the password file ${file} cannot be read (${systemCode(error)}): fix it, then start again`);
  }
}
