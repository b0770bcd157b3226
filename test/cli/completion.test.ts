/** `strongroom completion`: the real shells complete commands, flags and the paths of secrets, or nothing. */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { makeCommandProgram } from "../../tools/rig/command-program.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, environment } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { hasPython, runProgramOnTerminal } from "../support/pseudo-terminal.js";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** Prints for each line, which ends at the cursor, its candidates and then a line that ends them. */
const programs: { readonly [S in Shell]: (lines: readonly (readonly string[])[]) => string } = {
  bash: (lines) => `source completion.bash
try() { COMP_LINE="$*" COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
COMP_POINT=\${#COMP_LINE}; _strongroom; for found in "\${COMPREPLY[@]}"; do echo "$found"; done; echo ${mark}; }
${calls(lines)}`,
  zsh: (lines) => `autoload -U compinit; compinit -u -D; source completion.zsh
compadd() { [[ "$1" == -S ]] && shift 2; shift; for it in "$@"; do [[ "$it" == "$PREFIX"* ]] && print -r -- "$it"; done; true }
_describe() { local it; for it in "\${(@P)2}"; do [[ "$it" == "$PREFIX"* ]] && print -r -- "\${it%%:*}"; done; true }
_files() { print -r -- "a file" }
_normal() { print -r -- "\${words[CURRENT]}.file" }
try() { words=("$@"); CURRENT=$#; PREFIX="\${words[-1]}"; _strongroom; print -r -- ${mark} }
${calls(lines)}`,
  fish: (lines) => `source completion.fish
function try; complete -C "$argv" | string replace -r '\\t.*' ''; echo ${mark}; end
${calls(lines)}`,
};

const noStartFiles: { readonly [S in Shell]: string } = { bash: "--norc", zsh: "-f", fish: "--no-config" };

const mark = "end of candidates";

/** No word has a quote. */
function calls(lines: readonly (readonly string[])[]): string {
  return lines.map((words) => `try ${["strongroom", ...words].map((word) => `'${word}'`).join(" ")}\n`).join("");
}

const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["a command", ["gener"], ["generate"]],
  ["several commands", ["un"], ["undo", "unlock"]],
  ["a command behind flags", ["--json", "-q", "gener"], ["generate"]],
  ["a command behind a flag's value", ["--home", "get", "gener"], ["generate"]],
  ["a flag before the command", ["--jso"], ["--json"]],
  ["a flag behind flags and the command", ["--json", "put", "x", "--from"], ["--from-file"]],
  ["paths behind flags and the command", ["--timeout", "9s", "get", "app/db/n"], ["app/db/name"]],
  ["a program behind flags and the command", ["-q", "run", "--", "cat", "a-f"], ["a-f.file"]],
  ["no flag of a command that is only an argument", ["get", "put", "--from"], []],
  ["a flag", ["put", "x", "--from"], ["--from-file"]],
  ["a flag of serve", ["serve", "--scrypt"], ["--scrypt-log-n"]],
  ["words of a flag", ["put", "x", "--type", "pass"], ["password"]],
  ["words that a flag has only in one command", ["import", "--format", "las"], ["lastpass"]],
  ["paths behind a flag", ["run", "--prefix", "a"], ["app/"]],
  ["commands after help", ["help", "gener"], ["generate"]],
  ["words of a command", ["token", "ro"], ["rotate"]],
  ["words of a command behind a flag's value", ["token", "--path", "x", "ro"], ["rotate"]],
  ["no word of a command behind one of them", ["token", "revoke", "ro"], []],
  ["names of tokens behind revoke", ["token", "revoke", "deploy-"], ["deploy-1", "deploy-2"]],
  ["names of tokens behind rotate and flags", ["--json", "token", "rotate", "ru"], ["runner"]],
  ["one name of a token", ["token", "revoke", "runner", "ru"], []],
  ["folders", ["get", "a"], ["app/"]],
  ["paths", ["get", "app/db/"], ["app/db/name", "app/db/password"]],
  ["paths of an alias", ["set", "app/db/n"], ["app/db/name"]],
  ["second paths", ["mv", "x", "app/db/n"], ["app/db/name"]],
  ["a path behind a variable's name", ["run", "--set", "DB=app/db/n"], ["DB=app/db/name"]],
  ["nothing before a variable's =", ["run", "--set", "app"], []],
  ["no files for a flag with words", ["put", "x", "--type", "a-f"], []],
  ["arguments of the command behind --", ["run", "--prefix", "app/", "--", "cat", "a-f"], ["a-f.file"]],
  ["no missing path", ["get", "nothing/"], []],
  ["no path in the trash for a command of secrets", ["get", "old/"], []],
  ["paths in the trash behind trash rm", ["trash", "rm", "old/a"], ["old/a"]],
  ["another path behind trash rm", ["trash", "rm", "old/a", "old/"], ["old/a", "old/b"]],
  ["a folder in the trash behind flags and trash ls", ["--json", "trash", "ls", "o"], ["old/"]],
  ["an action that only trash has", ["trash", "em"], ["empty"]],
  ["paths and those in the trash behind undo", ["undo", "app/db/"], ["app/db/gone", "app/db/name", "app/db/password"]],
];

describe("completion", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const path of ["app/db/password", "app/db/name", "b/c:d", "b/my key", `b/it's "$5" x`, "only one/secret"])
      await mustPut(started, path, "v");
    for (const path of ["app/db/gone", "old/a", "old/b"]) {
      await mustPut(started, path, "v");
      mustSucceed(await send(started, { method: "POST", path: `/v1/trash/${path}` }));
    }
    for (const name of ["deploy-1", "deploy-2", "runner"]) await mustCreateToken(started, { name, can: ["get"] });
  });

  /** Runs `complete-paths` with more patience than at a prompt: other tests may keep the machine busy. */
  let completePaths = "";

  /** Holds the shells' scripts and a `strongroom` for them. */
  let directory = "";
  before(async () => {
    directory = temporaryDirectory();
    const program = await makeCommandProgram();
    completePaths = `[ "$1" = complete-paths ] && shift && exec "${program}" complete-paths --timeout 60s "$@"`;
    writeFileSync(join(directory, "strongroom"), `#!/bin/sh\n${completePaths}\n`, {
      mode: 0o755,
    });
    writeFileSync(join(directory, "a-f.file"), "");
    for (const shell of shells) {
      writeFileSync(join(directory, `completion.${shell}`), (await run(["completion", shell])).stdout);
    }
  });

  /** Returns the sorted candidates of each line; one process completes all of them. */
  async function complete(shell: Shell, lines: readonly (readonly string[])[]): Promise<string[][]> {
    const here = environment({ STRONGROOM_HOME: server().home });
    const child = spawn(shell, [noStartFiles[shell], "-c", programs[shell](lines)], {
      cwd: directory,
      env: { ...here, PATH: `${directory}:${here["PATH"]}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = await collect(child).ended;
    expect(stderr).to.equal("");
    const found = stdout.split(`${mark}\n`).slice(0, -1);
    expect(found).to.have.lengthOf(lines.length);
    return found.map((text) => text.split("\n").filter(Boolean).sort());
  }

  for (const shell of shells) {
    describe(shell, () => {
      before(function () {
        const { status } = spawnSync(shell, [noStartFiles[shell], "-c", "true"], { env: environment({}) });
        needs(this, status === 0, shell);
      });

      it(`${shell} completes commands, flags, words and paths`, async () => {
        const found = await complete(
          shell,
          rows.map(([, words]) => words),
        );
        for (const [index, [what, , want]] of rows.entries()) {
          const typed = shell === "bash" ? want.map((word) => word.replace(/^DB=/, "")) : want; // bash keeps the part before =
          expect(found[index], what).to.deep.equal(typed);
        }
      });

      it(`${shell} completes files behind a flag of one letter, and behind one before the command`, async () => {
        const file = shell === "zsh" ? "a file" : "a-f.file"; // of the stub above
        const lines = [
          ["inject", "-i", "a-f"],
          ["--home", "a-f"],
        ];
        expect(await complete(shell, lines)).to.deep.equal([[file], [file]]);
      });

      it(`${shell} completes no paths while the vault is locked`, async () => {
        await mustLock(server());
        try {
          expect(await complete(shell, [["get", "a"], ["gener"]])).to.deep.equal([[], ["generate"]]);
        } finally {
          await mustUnlock(server());
        }
      });
    });
  }

  /** Returns the commands that bash runs after Tab and Enter at the end of each text, as it reads them from a terminal. */
  const typed: readonly (readonly [what: string, typed: string, run: readonly string[]])[] = [
    ["a path", "get app/db/n", ["get", "app/db/name"]],
    ["a path with a colon, where bash splits words", "get b/c:", ["get", "b/c:d"]],
    ["a variable's path, where bash splits words", "run --set DB=app/db/n", ["run", "--set", "DB=app/db/name"]],
    ["a path with a space", "get b/my\\ k", ["get", "b/my key"]],
    ["a path in quotes", "get 'b/my k", ["get", "b/my key"]],
    ["a path in double quotes", 'get "b/it', ["get", `b/it's "$5" x`]],
    ["a folder in quotes", "get 'only o", ["get", "only one/secret"]],
    ["a variable in quotes", "run --set 'K=b/my k", ["run", "--set", "K=b/my key"]],
    ["a quoted path behind a variable's name", "run --set K='b/my k", ["run", "--set", "K=b/my key"]],
    ["a flag's word behind =", "import --on-duplicate=su", ["import", "--on-duplicate=suffix"]],
    ["a command behind --", "run -- only-on-this-pa", ["run", "--", "only-on-this-path"]],
    ["a command's file behind --", "run -- cat a-f", ["run", "--", "cat", "a-f.file"]],
  ];

  it("bash on a terminal completes quoted paths, variables and commands", async function () {
    needs(this, hasPython(), "Python");
    const show = `#!/bin/sh\n${completePaths}\nprintf '<%s>' "$@"; echo; echo done:\n`;
    const bin = temporaryDirectory();
    writeFileSync(join(bin, "strongroom"), show, { mode: 0o755 });
    writeFileSync(join(bin, "only-on-this-path"), "#!/bin/sh\n", { mode: 0o755 });
    const keys = [
      `source ${join(directory, "completion.bash")}; cd ${directory}; echo "do"ne:`,
      ...typed.map(([, text]) => `strongroom ${text}\t`),
      "exit",
    ];
    const reactions = keys.map((text, i) => ({ question: i === 0 ? "bash-" : "done:\r\n", keys: `${text}\r` }));
    const more = { STRONGROOM_HOME: server().home, PATH: `${bin}:${environment({})["PATH"]}`, HISTFILE: "" };
    const { shown } = await runProgramOnTerminal(["bash", "--norc", "--noprofile", "-i"], reactions, more);
    const ran = [...shown.matchAll(/(<.*>)\r\n/g)].map(([, line]) => line);
    const want = typed.map(([what, , words]) => [what, words.map((word) => `<${word}>`).join("")]);
    expect(typed.map(([what], i) => [what, ran[i]])).to.deep.equal(want);
  });

  it("completion names every command of the help, and no hidden one", async () => {
    const { stdout: help } = await run(["--help"]);
    const { stdout: script } = await run(["completion", "bash"]);
    const [, list = ""] = help.split("\nflags:\n");
    const names = [...list.matchAll(/^ {2}([a-z][a-z-]*)(?:\|([a-z]+))? /gm)].flatMap(([, ...found]) =>
      found.filter(Boolean),
    );
    expect(names).to.include.members(["serve", "get", "put", "set", "completion", "version"]);
    const [, listed = ""] = /compgen -W \$'(.*?)'/.exec(script) ?? [];
    expect(listed.split("\\n")).to.have.members(names);
    expect(help).not.to.contain("complete-paths");
  });

  it("completion exits 2 on an unknown shell and names the known ones", async () => {
    const { code, stderr } = await run(["completion", "tcsh"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("bash, zsh, fish");
  });
});
