/** Clipboard programs of the supported systems, and the choice among those installed. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

type CommandLine = readonly [string, ...string[]];

/** Values pass through pipes, never through arguments. */
export type Clipboard = {
  readonly copy: CommandLine;
  readonly paste: CommandLine;
  readonly clear: CommandLine;
};

type Candidate = Clipboard & { readonly works: (environment: NodeJS.ProcessEnv) => boolean };

const onWayland = (environment: NodeJS.ProcessEnv) => Boolean(environment["WAYLAND_DISPLAY"]);
const onX = (environment: NodeJS.ProcessEnv) => Boolean(environment["DISPLAY"]);
const always = () => true;

const candidates: readonly Candidate[] = [
  { works: onWayland, copy: ["wl-copy"], paste: ["wl-paste", "--no-newline"], clear: ["wl-copy", "--clear"] },
  {
    works: onX,
    copy: ["xclip", "-selection", "clipboard", "-in"],
    paste: ["xclip", "-selection", "clipboard", "-out"],
    clear: ["xclip", "-selection", "clipboard", "-in"],
  },
  {
    works: onX,
    copy: ["xsel", "--clipboard", "--input"],
    paste: ["xsel", "--clipboard", "--output"],
    clear: ["xsel", "--clipboard", "--clear"],
  },
  { works: always, copy: ["pbcopy"], paste: ["pbpaste"], clear: ["pbcopy"] },
  {
    works: always, // Windows, and WSL
    copy: ["clip.exe"],
    paste: ["powershell.exe", "-NoProfile", "-Command", "Get-Clipboard -Raw"],
    clear: ["clip.exe"],
  },
];

/** Returns the first candidate whose programs are all installed, or null. */
export function findClipboard(environment: NodeJS.ProcessEnv = process.env): Clipboard | null {
  const isThere = ([program]: CommandLine) => isInPath(program, environment["PATH"] ?? "");
  const found = candidates.find(
    ({ works, copy, paste, clear }) => works(environment) && [copy, paste, clear].every(isThere),
  );
  return found === undefined ? null : { copy: found.copy, paste: found.paste, clear: found.clear };
}

function isInPath(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Writes a program's input; returns its exit status. Its output is ignored: such programs stay running and hold it open. */
export function feed([program, ...args]: CommandLine, input: Uint8Array): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "ignore"] });
    child.on("error", reject).on("exit", resolve);
    child.stdin.on("error", () => {}).end(input); // a program that closes its input reports that by its exit status
  });
}

/** Returns a program's standard output. */
export async function output([program, ...args]: CommandLine): Promise<Buffer> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  const failed = new Promise<never>((_resolve, reject) => child.on("error", reject));
  return Promise.race([failed, collect(child.stdout)]);
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
