/** Clipboard programs of the supported systems, and the choice among those installed. */
import { type CommandLine, isInPath } from "../session/programs.js";

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
