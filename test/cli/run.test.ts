/** `strongroom run`: variables, exit status and signals of the child, and `--mask`. */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import fc from "fast-check";
import { Masker } from "../../src/cli/kit/programs/output-mask.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, mainFile, node } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, start, strongroom } from "./run-command.js";

const secrets: Readonly<Record<string, string>> = {
  "app/db/password": "hunter2",
  "app/api-key": "key with $HOME, 'quotes'\nand a line",
  "app/pin": "123",
  "clash/a/token": "one",
  "clash/b/token": "two",
  "digit/1st": "x",
  "big/fits": "v".repeat(100_000),
  "big/large": "v".repeat(1_048_576),
  "nul/value": "a\0b",
  "mask/long": "sesame-open",
  "mask/longer": "sesame-open-wide",
  "mask/overlap": "wide-and-far",
  "spaced/a b%c{d}": "spaced",
};

async function prepare(server: TestServer): Promise<void> {
  await mustInit(server);
  for (const [path, value] of Object.entries(secrets)) await mustPut(server, path, { value });
}

describe("strongroom run, through the real command", () => {
  const server = shareLocalServer({}, prepare);
  const app = ["run", "--prefix", "app/", "--"];

  describe("run: exit status", () => {
    for (const status of [0, 1, 42, 126, 127, 255]) {
      it(`run returns exit status ${status}`, async () => {
        const { code, stderr } = await strongroom(server(), [...app, "sh", "-c", `exit ${status}`]);
        expect({ code, stderr }).to.deep.equal({ code: status, stderr: "" });
      });
    }

    for (const [signal, number] of [
      ["INT", 2],
      ["TERM", 15],
      ["KILL", 9],
      ["HUP", 1],
      ["QUIT", 3],
    ] as const) {
      it(`run returns 128 + ${number} when SIG${signal} ends the command`, async () => {
        const { code } = await strongroom(server(), [...app, "sh", "-c", `kill -${signal} $$`]);
        expect(code).to.equal(128 + number);
      });
    }

    it("run returns 127 for a missing command, and 126 for one that cannot be executed, with a message", async () => {
      const closed = temporaryDirectory();
      chmodSync(closed, 0);
      const environment = { PATH: `${closed}:${process.env["PATH"]}` };
      const missing = await strongroom(server(), [...app, "no-such-command"], { environment });
      mustRefuseWith(missing, 127, "no-such-command", "not found");
      const file = join(temporaryDirectory(), "plain");
      writeFileSync(file, "#!/bin/sh\n", { mode: 0o600 });
      mustRefuseWith(await strongroom(server(), [...app, file]), 126, "cannot be executed");
      mustRefuseWith(await strongroom(server(), [...app, temporaryDirectory()]), 126, "cannot be executed");
    });
  });

  describe("run: signals", () => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const) {
      it(`run forwards ${signal}, and waits for the command to handle it`, async () => {
        const name = signal.slice(3);
        const script = `trap 'echo got ${name}; exit 9' ${name}; echo ready; while :; do sleep 0.05; done`;
        const { child, finished } = start(server(), [...app, "sh", "-c", script]);
        child.stdout.once("data", () => child.kill(signal));
        const { code, stdout } = await finished;
        expect({ code, stdout }).to.deep.equal({ code: 9, stdout: `ready\ngot ${name}\n` });
      });
    }

    it("Ctrl-C on a terminal reaches the command once", async function () {
      needs(this, spawnSync("script", ["--version"]).status === 0, "script(1)");
      const directory = temporaryDirectory();
      const program = join(directory, "count.mjs");
      writeFileSync(
        program,
        `let count = 0;
       process.on("SIGINT", () => { if (++count === 1) setTimeout(() => { console.log("count", count); process.exit(5); }, 300); });
       setInterval(() => {}, 1000);
       process.stdout.write("ready\\n");`,
      );
      const command = `'${node}' '${mainFile}' run --prefix app/ -- '${node}' '${program}'`;
      const typing = `(while ! grep -q ready '${directory}/seen'; do sleep 0.05; done; printf '\\003'; sleep 2) |
      script -qefc "exec ${command.replaceAll('"', '\\"')}" /dev/null > '${directory}/seen'; echo "status $?"; cat '${directory}/seen'`;
      const env = environment({ STRONGROOM_HOME: server().home });
      writeFileSync(join(directory, "seen"), "");
      const shell = spawn("sh", ["-c", typing], { env, cwd: directory, detached: true });
      expect(await text(shell.stdout))
        .to.match(/^status 5$/m)
        .and.match(/count 1\b/);
    });
  });

  describe("run: streams and arguments", () => {
    it("run passes standard input, output and error through unchanged", async () => {
      const input = randomBytes(3_000_000);
      const out = await strongroom(server(), [...app, "cat"], { input });
      expect(out.bytes.equals(input)).to.equal(true);
      const { stderr } = await strongroom(server(), [...app, "sh", "-c", "cat >&2"], { input: "to the other\r\n\0" });
      expect(stderr).to.equal("to the other\r\n\0");
    });

    it("run uses no shell, and does not read the command's own flags", async () => {
      const args = ["printf", "%s|", "$HOME; ls", "*", "--prefix", "-q", "--version", "a b", ""];
      const { stdout } = mustDo(await strongroom(server(), [...app, ...args]));
      expect(stdout).to.equal("$HOME; ls|*|--prefix|-q|--version|a b||");
      const withoutDashes = await strongroom(server(), ["run", "--prefix", "app/", "printf", "%s|", "--version", "-h"]);
      expect(mustDo(withoutDashes).stdout).to.equal("--version|-h|");
    });
  });

  describe("run: what it inherits", () => {
    const command = fileURLToPath(new URL("../../../bin/strongroom.cjs", import.meta.url));
    /** Runs a shell's script in which "$@" is `strongroom run --prefix app/ --`. */
    const shell = async (script: string, more: Readonly<Record<string, string>> = {}) => {
      const env = environment({ STRONGROOM_HOME: server().home, ...more });
      const child = spawn("sh", ["-c", script, "sh", command, ...app], { env, stdio: ["ignore", "pipe", "pipe"] });
      const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
      return { out, errors, code: code as number | null };
    };

    before(function () {
      needs(this, process.platform === "linux", "Linux");
    });

    it("run passes on descriptors under their numbers, also with --mask, and holds none of them", async () => {
      const three = `"$@" sh -c 'cat <&3; cat <&7; echo nine >&9' 3<"$1.3" 7<"$1.7" 9>&1`;
      const directory = temporaryDirectory();
      for (const number of [3, 7]) writeFileSync(join(directory, `in.${number}`), `${number}\n`);
      const script = three.replaceAll("$1", join(directory, "in"));
      expect((await shell(script)).out).to.equal("3\n7\nnine\n");
      const { out: masked } = await shell(script.replace('"$@"', '"$1" run --mask --prefix app/ --'));
      expect(masked.split("\n").sort()).to.deep.equal(["", "3", "7", "nine"]); // --mask makes a pipe of the output
      const early = await shell(`{ "$@" sh -c 'exec 5>&-; sleep 2' 5>&1 >/dev/null; echo late; } 2>&1 | head -n1`);
      expect(early.out).to.equal("late\n");
    });

    it("run passes on signals that are ignored, and no other", async function () {
      needs(this, spawnSync("env", ["--ignore-signal=HUP", "true"]).status === 0, "env --ignore-signal");
      for (const [ignored, mask] of [
        ["", "0000000000000000"],
        ["HUP", "0000000000000001"],
        ["HUP INT PIPE USR2", "0000000000001803"],
        ["QUIT TERM TSTP", "0000000000084004"],
      ] as const) {
        const trap = ignored === "" ? "" : `trap '' ${ignored}; `;
        const { out, errors } = await shell(`${trap}exec "$@" grep SigIgn /proc/self/status`);
        expect({ out, errors }, ignored).to.deep.equal({ out: `SigIgn:\t${mask}\n`, errors: "" });
      }
    });

    it("run and its command survive a hang-up under nohup, from the start on", async function () {
      needs(this, spawnSync("env", ["--block-signal=HUP", "true"]).status === 0, "env --block-signal");
      const script = `trap '' HUP; "$@" sh -c 'kill -HUP $PPID $$; echo survived' & kill -HUP $!; wait $!`;
      expect(await shell(script)).to.deep.equal({ out: "survived\n", errors: "", code: 0 });
    });

    it("run refuses an argument that is not UTF-8, and leaves out such a variable with a warning", async () => {
      for (const argument of ["'\\351'", "'ab\\377cd'", "'\\300\\200'"]) {
        const { out, errors, code } = await shell(`"$@" printf %s a "$(printf ${argument})"`);
        expect({ out, code }, argument).to.deep.equal({ out: "", code: 2 });
        expect(errors).to.match(/^strongroom: argument 8 is not UTF-8/);
      }
      const variable = `X="$(printf 'a\\351')" exec "$@" sh -c 'echo "\${X-none} $Y"'`;
      const { out, errors } = await shell(variable, { Y: "caf\u00e9 \ufffd" });
      expect(out).to.equal("none caf\u00e9 \ufffd\n");
      expect(errors).to.equal("strongroom: warning: not UTF-8, and so not passed on to the command: X\n");
      expect((await shell(`"$@" printf %s 'caf\u00e9 \ufffd'`)).out).to.equal("caf\u00e9 \ufffd");
    });

    it("a variable that is not UTF-8 is left out for every other program of the user, with the same warning", async () => {
      const seen = join(temporaryDirectory(), "seen");
      const show = join(temporaryDirectory(), "show");
      writeFileSync(show, `#!/bin/sh\necho "\${X-none} $Y" >'${seen}'\n`, { mode: 0o755 });
      const directory = dirname(show);
      const commands: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
        [`"$1" edit app/pin`, { VISUAL: show, XDG_RUNTIME_DIR: directory }],
        [`"$1" ssh-agent -- '${show}'`, {}],
      ];
      for (const [command, more] of commands) {
        const env = { ...more, PATH: `${directory}:${process.env["PATH"]}`, Y: "caf\u00e9 \ufffd" };
        const { errors } = await shell(`X="$(printf 'a\\351')" ; export X; ${command}`, env);
        expect(errors, command).to.contain("strongroom: warning: not UTF-8, and so not passed on to the command: X\n");
        expect(readFileSync(seen, "utf8"), command).to.equal("none caf\u00e9 \ufffd\n");
        rmSync(seen);
      }
      const { errors } = await shell(`X="$(printf 'a\\351')" exec "$1" mcp --use app/`);
      expect(errors).to.contain("passed on to the command: X\n");
    });

    it("the command gets the variables that the program's own shell uses for itself", async () => {
      const names = { hup: "1", k: "2", v: "3", f: "4", block: "5" };
      const { out } = await shell(`exec "$@" sh -c 'echo "$hup$k$v$f$block\${STRONGROOM_INHERITED-}"'`, names);
      expect(out).to.equal("12345\n");
    });
  });

  describe("run: variables", () => {
    const show = (...names: string[]) => [
      "--",
      "sh",
      "-c",
      `printf '%s|' ${names.map((name) => `"$${name}"`).join(" ")}`,
    ];

    it("run names variables by the last segment, in capitals with _ only where that is not a valid name", async () => {
      const { stdout } = mustDo(
        await strongroom(server(), ["run", "--prefix", "app/", ...show("password", "API_KEY")]),
      );
      expect(stdout).to.equal(`hunter2|${secrets["app/api-key"]}|`);
    });

    it("run --print-names prints each variable with its source, and runs nothing", async () => {
      const directory = temporaryDirectory();
      writeFileSync(join(directory, "env"), "PLAIN=text\npin=text\nURL=strongroom://app/pin\n");
      const args = ["run", "-e", "env", "--prefix", "app/", "--set", "OTHER=app/db/password", "--print-names"];
      const marker = join(directory, "started");
      const { stdout } = mustDo(await strongroom(server(), [...args, "--", "touch", marker], { cwd: directory }));
      const rows = [
        "PLAIN\tenv, line 1",
        "pin\tapp/pin",
        "URL\tenv, line 3",
        "API_KEY\tapp/api-key",
        "OTHER\tapp/db/password",
      ];
      expect(stdout).to.equal(`${rows.join("\n")}\n`);
      expect(existsSync(marker)).to.equal(false);
      mustRefuseWith(await strongroom(server(), ["run", "--prefix", "app/"]), 2, "no command given");
    });

    it("conflicting names are rejected with both paths and the remedy", async () => {
      const clash = ["run", "--prefix", "clash/"];
      const words = ["clash/a/token", "clash/b/token", "token", "--set NAME=path"];
      mustRefuseWith(await strongroom(server(), [...clash, ...show("token")]), 7, ...words);
      const set = [...clash, "--set", "OTHER=clash/a/token", ...show("token", "OTHER")];
      expect(mustDo(await strongroom(server(), set)).stdout).to.equal("two|one|");
      const own = [...clash, "--set", "token=app/pin", ...show("token")];
      expect(mustDo(await strongroom(server(), own)).stdout).to.equal(`${secrets["app/pin"]}|`);
    });

    it("an invalid variable name is rejected with its path and the remedy", async () => {
      mustRefuseWith(await strongroom(server(), ["run", "--prefix", "digit/", ...show("X")]), 2, "digit/1st", "--set");
      const set = ["run", "--prefix", "digit/", "--set", "FIRST=digit/1st", ...show("FIRST")];
      expect(mustDo(await strongroom(server(), set)).stdout).to.equal("x|");
    });

    for (const [wrong, word] of [
      ["A", "NAME=path"],
      ["1A=app/pin", "1A is not a valid variable name"],
      ["=app/pin", "--set must be NAME=path"],
      ["A=app//pin", "empty segment"],
    ] as const) {
      it(`run rejects --set ${wrong}`, async () => {
        mustRefuseWith(await strongroom(server(), ["run", "--set", wrong, "--", "true"]), 2, word);
      });
    }

    it("a value that no variable can hold is rejected with its path and the remedy", async () => {
      expect(mustDo(await strongroom(server(), ["run", "--set", "A=big/fits", ...show("A")])).stdout).to.have.length(
        100_001,
      );
      const large = await strongroom(server(), ["run", "--set", "A=big/large", "--", "true"]);
      mustRefuseWith(large, 2, "big/large", "131072", "strongroom get", "strongroom inject");
      mustRefuseWith(await strongroom(server(), ["run", "--set", "A=nul/value", "--", "true"]), 2, "nul/value", "NUL");
    });

    it("run removes the token from the environment, unless a flag sets it by name", async () => {
      const token = { STRONGROOM_TOKEN: server().token };
      const shown = await strongroom(server(), ["run", "--prefix", "app/", ...show("STRONGROOM_TOKEN")], {
        environment: token,
      });
      expect(mustDo(shown).stdout).to.equal("|");
      const asked = await strongroom(
        server(),
        ["run", "--set", "STRONGROOM_TOKEN=app/pin", ...show("STRONGROOM_TOKEN")],
        {
          environment: token,
        },
      );
      expect(mustDo(asked).stdout).to.equal("123|");
    });

    it("run fills references in env files, and keeps everything else unchanged", async () => {
      const file = join(temporaryDirectory(), "env");
      const c = `{{ .Values.c }} $HOME \${A} strongroom://app/pin`;
      const lines = [
        "# what the service needs",
        "export A=strongroom://app/db/password # whole",
        'B="postgres://u:{{ strongroom://app/db/password }}@{{strongroom://app/pin}}/x"',
        `C='${c}'`,
        'D="two\\nlines',
        'and a third"',
        "E=strongroom://spaced/a%20b%25c%7Bd%7D",
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      const { stdout } = mustDo(
        await strongroom(server(), ["run", "--env-file", file, ...show("A", "B", "C", "D", "E")]),
      );
      expect(stdout).to.equal(`hunter2|postgres://u:hunter2@123/x|${c}|two\nlines\nand a third|spaced|`);
    });

    it("--set takes precedence over --prefix, then later and earlier env files, then the environment", async () => {
      const directory = temporaryDirectory();
      writeFileSync(join(directory, "one"), "pin=one\npassword=one\nONE=one\nTWO=one\n");
      writeFileSync(join(directory, "two"), "TWO=two\n");
      const files = ["--env-file", join(directory, "one"), "--env-file", join(directory, "two")];
      const args = ["run", ...files, "--prefix", "app/", "--set", "password=mask/long"];
      args.push("--set", "REST=app/db/password", ...show("password", "pin", "ONE", "TWO", "KEPT"));
      const { stdout } = mustDo(await strongroom(server(), args, { environment: { ONE: "zero", KEPT: "kept" } }));
      expect(stdout).to.equal("sesame-open|123|one|two|kept|");
    });

    it("an env file without references needs no server", async () => {
      const home = temporaryDirectory();
      writeFileSync(join(home, "env"), "A=plain\n");
      expect(
        mustDo(await strongroom({ home }, ["run", "--env-file", join(home, "env"), ...show("A")])).stdout,
      ).to.equal("plain|");
    });

    it("run says how to set a variable where one is given to -e in the place of a file", async () => {
      const ended = await strongroom(server(), ["run", "-e", "API_KEY=strongroom://app/pin", ...show("API_KEY")]);
      mustRefuseWith(ended, 2, "--env-file takes a file", "--set API_KEY=path");
    });

    it("missing secrets, wrong flags or a locked vault prevent the command's start", async () => {
      const marker = join(temporaryDirectory(), "started");
      const touch = ["--", "touch", marker];
      const missing = ["run", "--set", "A=no/a", "--set", "B=no/b", "--set", "C=app/pin", ...touch];
      mustRefuseWith(await strongroom(server(), missing), 4, "no/a, no/b");
      const misspelled = ["run", "--set", "A=app/pni", ...touch];
      mustRefuseWith(await strongroom(server(), misspelled), 4, "no secret at app/pni. Did you mean app/pin?");
      mustRefuseWith(await strongroom(server(), ["run", "--prefix", "nothing/", ...touch]), 4, "nothing/");
      mustRefuseWith(
        await strongroom(server(), ["run", ...touch]),
        2,
        "choose them with --prefix, --set or --env-file",
      );
      mustRefuseWith(await strongroom(server(), ["run", "-e", `${marker}.env`, ...touch]), 2, "cannot be read");
      mustRefuseWith(
        await strongroom({ home: temporaryDirectory() }, ["run", "--prefix", "app/", ...touch]),
        10,
        "serve",
      );
      const locked = await startLocalServer();
      await mustInit(locked);
      await mustLock(locked);
      mustRefuseWith(await strongroom(locked, ["run", "--prefix", "app/", ...touch]), 3, "locked");
      expect(existsSync(marker)).to.equal(false);
    });

    for (const [line, word] of [
      ["just words", "line 1: not NAME=value"],
      ["A=1\nA=2", "line 2: A is already set in line 1"],
      ["A='open", "line 1: A: the quotes are not closed"],
      ["A=pass#word", "line 1: A: is the # a comment?"],
      ["A=a#b\nB=1\njust words\nB='open", "4 lines are unclear\n  line 1: A: is the # a comment? Put"],
      ["A={{ strongroom://app/pin", "{{ strongroom://path }}"],
      ["A=strongroom://app//pin", "empty segment"],
      ['A="{{ strongroom://app//pin }}"', "env, line 1: the reference"],
      [Buffer.from("A=\xe9", "latin1"), "is not UTF-8 text: name a text file"],
    ] as const) {
      it(`run rejects the env file ${JSON.stringify(line.toString())} with its line`, async () => {
        const file = join(temporaryDirectory(), "env");
        writeFileSync(file, line);
        mustRefuseWith(await strongroom(server(), ["run", "--env-file", file, "--", "true"]), 2, word);
      });
    }
  });

  describe("run --mask", () => {
    const mask = ["run", "--mask", "--prefix", "mask/", "--"];

    it("--mask masks values that are written in pieces, on both streams, the longest first", async () => {
      const script = `printf 'a sesa'; sleep 0.1; printf 'me-op'; sleep 0.1; printf 'en b sesame-open-wide c\\n'
      printf 'err sesame-' >&2; sleep 0.1; echo 'open!' >&2`;
      const { code, stdout, stderr } = await strongroom(server(), [...mask, "sh", "-c", script]);
      expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: "a *** b *** c\n", stderr: "err ***!\n" });
    });

    it("--mask shows the start of a value that does not continue, and returns status and signal", async () => {
      const { code, stdout } = await strongroom(server(), [...mask, "sh", "-c", "printf 'sesame-op'; exit 42"]);
      expect({ code, stdout }).to.deep.equal({ code: 42, stdout: "sesame-op" });
      expect((await strongroom(server(), [...mask, "sh", "-c", "kill -TERM $$"])).code).to.equal(143);
    });

    it("--mask changes no other byte, UTF-8 or not", async () => {
      const input = randomBytes(3_000_000);
      const { bytes } = await strongroom(server(), [...mask, "cat"], { input });
      expect(bytes.equals(input)).to.equal(true);
    });

    it("--mask warns about values too short to mask, unless -q is given", async () => {
      const { stdout, stderr } = await strongroom(server(), ["run", "--mask", "--prefix", "app/", "--", "echo", "123"]);
      expect(stdout).to.equal("123\n");
      expect(stderr).to.match(/shorter than 4 bytes: pin\n$/);
      mustDo(await strongroom(server(), ["run", "-q", "--mask", "--prefix", "app/", "--", "true"]));
    });

    it("the command ends when its output no longer has a reader", async () => {
      const { child, finished } = start(server(), [...mask, "yes"]);
      child.stdout.once("data", () => child.stdout.destroy());
      expect((await finished.catch(() => null)) ?? (await waitForExit(child))).to.not.equal(null);
    });

    it("--mask masks exactly the values, independent of chunk boundaries", () => {
      const printed = fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 40 });
      const value = fc.string({ unit: fc.constantFrom("a", "b", "é"), minLength: 1, maxLength: 9 });
      fc.assert(
        fc.property(fc.array(value, { maxLength: 4 }), printed, fc.array(fc.nat(50)), (values, output, cuts) => {
          const bytes = Buffer.from(output);
          const masker = new Masker(values.map((value) => Buffer.from(value)));
          const ends = [...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
          const shown = ends.map((end, i) => masker.take(bytes.subarray(i === 0 ? 0 : (ends[i - 1] ?? 0), end)));
          expect(Buffer.concat([...shown, masker.end()]).toString("latin1")).to.equal(maskedWhole(values, bytes));
        }),
        { numRuns: 2_000 },
      );
    });
  });

  async function waitForExit(child: { exitCode: number | null; once(event: "exit", listener: () => void): unknown }) {
    if (child.exitCode === null) await new Promise<void>((resolve) => child.once("exit", resolve));
    return child.exitCode;
  }

  /** A simple reference: one `***` for each stretch of overlapping occurrences. */
  function maskedWhole(values: readonly string[], bytes: Buffer): string {
    const long = values.map((value) => Buffer.from(value)).filter(({ length }) => length >= 4);
    let shown = "";
    let end = 0;
    for (let at = 0; at < bytes.length; at++) {
      const ends = long.filter((value) => bytes.subarray(at).indexOf(value) === 0).map(({ length }) => at + length);
      if (ends.length > 0 && at >= end) shown += "***";
      end = Math.max(end, ...ends);
      if (at >= end) shown += bytes.toString("latin1", at, at + 1);
    }
    return shown;
  }
});
