/** A server in the background: in a session of its own, so that it survives the terminal, with its log in the home. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { definitions, type Settings } from "../../../config/definitions.js";
import type { GivenFlags } from "../../../config/settings.js";
import { missingAsNull, moveFileOver, noFollow, systemFiles } from "../../../files/durable.js";
import { openHome } from "../../../files/home.js";
import { entryFile } from "../../../program-files.js";
import { settingsOfStart } from "../args/start-settings.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { printable } from "../output.js";

type BackgroundServer = { readonly pid: number; readonly log: string; readonly address: string };

const logName = "serve.log";
const maxLogBytes = 10 * 2 ** 20;

/**
 * Starts `strongroom serve` with these flags and returns once it listens.
 * @throws StartError for invalid settings; CommandFailure with what the server said when it ended instead
 */
export async function startInBackground(io: Io, flags: GivenFlags): Promise<BackgroundServer> {
  const settings = await settingsOfStart(flags, io.env);
  const home = await openHome(settings.home);
  const log = join(home.path, logName);
  // DANGER: without a limit the log of a server that runs for months fills the disk.
  const found = await missingAsNull(stat(log));
  if (found !== null && found.size > maxLogBytes) await moveFileOver(systemFiles, log, `${log}.1`);
  const file = await open(log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | noFollow, 0o600);
  try {
    const { size: before } = await file.stat();
    const given = Object.entries(flags).map(([name, text]) => `--${definitions[name as keyof Settings].flag}=${text}`);
    const args = ["--", entryFile, "serve", ...given];
    const [node] = io.program;
    const child = spawn(node, args, { detached: true, stdio: ["ignore", "pipe", file.fd], env: io.env });
    const { stdout } = child;
    if (stdout === null) throw new CommandFailure("unexpected", "the server's output cannot be read");
    const line = await Promise.race([firstLine(stdout), once(child, "exit").then(() => null)]);
    if (line === null) throw new CommandFailure("unexpected", await saidSince(log, before));
    stdout.destroy();
    child.unref();
    return { pid: child.pid ?? 0, log, address: /https:\S*[^\s,]/.exec(line)?.[0] ?? "" };
  } finally {
    await file.close();
  }
}

async function firstLine(stream: AsyncIterable<Buffer>): Promise<string | null> {
  let text = "";
  for await (const chunk of stream) {
    text += chunk.toString();
    if (text.includes("\n")) return text;
  }
  return null;
}

/** Returns the text for people that an ended server wrote: its log lines are JSON. */
async function saidSince(log: string, offset: number): Promise<string> {
  const lines = (await readFile(log)).subarray(offset).toString("utf8").trim().split("\n");
  const said = lines
    .filter((line) => !line.startsWith("{"))
    .map((line) => printable(line.replace(/^strongroom: /, "")));
  return said.length === 0 ? `the server ended at its start: see ${printable(log)}` : said.join("\n");
}
