/**
 * Files that a package manager installs next to the program, in `dist/share`: the manual page, made from the commands'
 * help, the completion scripts, and the bill of materials. `npm run share`, `npm pack` and `npm run docs` write them.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { renderSbom } from "../../packaging/sbom.js";
import { commands } from "../../src/cli/command-table.js";
import { exitCodes, exitMeanings } from "../../src/cli/kit/errors.js";
import { definitions } from "../../src/config/definitions.js";
import { readManifest } from "../../src/manifest.js";
import { commandHelp } from "../rig/parser.js";
import { run } from "../rig/process.js";

const completions = { bash: "strongroom.bash", zsh: "_strongroom", fish: "strongroom.fish" } as const;

/** Returns the text of each file by its name under `dist/share`. */
export async function renderShare(): Promise<ReadonlyMap<string, string>> {
  const scripts = Object.entries(completions).map(async ([shell, name]) => {
    return [join("completions", name), await completionScript(shell)] as const;
  });
  const made = [
    ["man/strongroom.1", await manualPage()],
    ["sbom.cdx.json", renderSbom()],
  ] as const;
  return new Map([...made, ...(await Promise.all(scripts))]);
}

export async function writeShare(directory: string): Promise<void> {
  for (const [name, text] of await renderShare()) {
    const file = join(directory, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

async function completionScript(shell: string): Promise<string> {
  const { code, stdout, stderr } = await run(["completion", shell]);
  if (code !== 0) throw new Error(`the completion of ${shell} cannot be made: ${stderr}`);
  return stdout;
}

async function manualPage(): Promise<string> {
  const { version, description } = readManifest();
  const shown = commands.filter(({ hidden }) => hidden !== true);
  const help = new Map<string, string>();
  for (const { name } of [...shown, { name: "flags" }]) help.set(name, await commandHelp(name));
  return [
    `.TH STRONGROOM 1 "" "strongroom ${version}" "User Commands"`,
    section("NAME", line("strongroom - a local vault for secrets")),
    section("SYNOPSIS", ".B strongroom", line("command [flags] [arguments]")),
    section("DESCRIPTION", line(description)),
    section("COMMANDS", ...shown.map(({ name }) => subsection(name, help.get(name) ?? ""))),
    section("CONNECTION", verbatim(help.get("flags") ?? "")),
    section(
      "EXIT STATUS",
      ...Object.entries(exitCodes).map(([name, code]) =>
        item(String(code), exitMeanings[name as keyof typeof exitCodes]),
      ),
    ),
    section("ENVIRONMENT", ...Object.values(definitions).map(({ variable, meaning }) => item(variable, meaning))),
  ]
    .join("\n")
    .concat("\n");
}

function section(title: string, ...parts: readonly string[]): string {
  return [`.SH ${title}`, ...parts].join("\n");
}

function subsection(name: string, help: string): string {
  return `.SS strongroom ${line(name)}\n${verbatim(help)}`;
}

/** The help as it is: its lines are made for 80 columns. */
function verbatim(text: string): string {
  return [".nf", ...text.trimEnd().split("\n").map(line), ".fi"].join("\n");
}

function item(term: string, text: string): string {
  return `.TP\n.B ${line(term)}\n${line(text)}`;
}

/** A line of text that roff takes as it is: without escapes, requests and typographic hyphens and quotes. */
function line(text: string): string {
  const escaped = text.replace(/[\\\-'`^~]/g, (character) => escapes[character] ?? character);
  return escaped.replace(/^(?=[.'])/, "\\&").replace(/[^\x20-\x7e]/gu, (character) => `\\[u${codePoint(character)}]`);
}

const escapes: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
};

function codePoint(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
