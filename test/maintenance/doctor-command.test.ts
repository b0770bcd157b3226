/** `strongroom doctor`: exit codes, passphrase sources, output, and servers running beside it. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { environment, mainFile, node, startProcess } from "../../tools/rig/process.js";
import { passphrase, realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustLock, mustPut, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { FakeClock } from "../support/manual-clock.js";
import { hasPython, runOnTerminal, runWithoutTerminal } from "../support/pseudo-terminal.js";
import { copyHome, doctor, inspect, makeHome } from "./doctor-homes.js";

function fileWith(bytes: string | Uint8Array): string {
  const file = join(temporaryDirectory(), "passphrase");
  writeFileSync(file, bytes);
  return file;
}

const longAgo = new Date(Date.now() - 2 * 3600 * 1000);
const stray = "vault/gen-1/secrets/.tmp-0123456789abcdef";

describe("strongroom doctor", () => {
  let home = "";
  let mark = 0;
  before(async () => {
    mark = cleanUpMark();
    home = await makeHome();
  });
  after(() => cleanUpTo(mark));

  describe("the report", () => {
    const members = [
      "ok",
      "home",
      "vaultPath",
      "server",
      "vault",
      "kept",
      "secrets",
      "opened",
      "expiry",
      "served",
      "findings",
      "vaultPort",
    ];

    it("doctor --json prints one object of a stable shape", async () => {
      const damaged = copyHome(home);
      writeFileSync(join(damaged, stray), "half", { mode: 0o600 });
      const { code, stdout, stderr } = await run(["doctor", "--json"], { STRONGROOM_HOME: damaged });
      expect(code).to.equal(12);
      expect(stderr).to.equal("");
      expect(stdout.split("\n")).to.have.lengthOf(2);
      const report = JSON.parse(stdout) as Record<string, unknown>;
      expect(Object.keys(report)).to.have.members(members);
      expect(report).to.include({ ok: false, home: damaged, vaultPath: join(damaged, "vault"), server: null });
      expect(report).to.deep.include({ vault: "gen-1", kept: [], secrets: 4, opened: false });
      const [finding, ...others] = report["findings"] as Record<string, unknown>[];
      expect(others).to.deep.equal([]);
      expect(finding).to.include({ code: "stray-temp", path: join(damaged, stray), fixable: true, fixed: false });
      expect(finding).to.have.all.keys("code", "path", "message", "remedy", "fixable", "fixed", "did");
    });

    it("doctor names the vaults kept by a forced init, without findings", async () => {
      const { exit, json } = await inspect(await makeHome(true));
      expect(exit).to.equal(0);
      expect(json).to.deep.include({ vault: "gen-2", kept: ["gen-1"], secrets: 4 });
    });

    it("doctor names the clock for a certificate that is not valid yet, which a restart replaces", async () => {
      const early = await startTestServer({
        home: emptyHome(),
        clock: new FakeClock(Date.now() + 30 * 24 * 3600 * 1000),
      });
      await early.stop();
      const [finding] = (await inspect(early.home)).json["findings"] as { code: string; remedy: string }[];
      expect(finding?.code).to.equal("certificate-expired");
      expect(finding?.remedy).to.contain("clock").and.to.contain("restart the server");
      await (await startTestServer({ home: early.home })).stop();
      expect((await inspect(early.home)).json["findings"]).to.deep.equal([]);
    });

    it("doctor says of each finding what is wrong, what to do and what was done, and shows no value", async () => {
      const damaged = copyHome(home);
      writeFileSync(join(damaged, stray), "half", { mode: 0o600 });
      writeFileSync(join(damaged, "vault", "odd\u001b[31m\n"), "?", { mode: 0o600 });
      const first = await run(["doctor", "--home", damaged, "--passphrase-file", fileWith(passphrase)]);
      expect(first.code).to.equal(12);
      expect(first.stdout).to.contain(stray).and.to.contain("(stray-temp)");
      expect(first.stdout).to.contain(`strongroom --home ${damaged} doctor --fix`);
      expect(first.stdout, "a name cannot control the terminal").to.contain("odd\\u{1b}[31m\\u{a}");
      expect(first.stdout).not.to.contain("\u001b");
      const second = await run(["doctor", "--home", damaged, "--fix"]);
      expect(second.code).to.equal(12);
      expect(second.stdout).to.contain("removed it").and.to.contain("1 finding\n");
      expect(first.stdout + second.stdout).not.to.match(/canary|correct horse/);
    });

    it("doctor -q prints nothing and exits as without it", async () => {
      expect(await run(["doctor", "-q", "--home", home])).to.deep.equal({ code: 0, stdout: "", stderr: "" });
    });

    for (const [what, make] of [
      ["a home that is not there", () => undefined],
      ["a home without a vault", (at: string) => void mkdirSync(join(at, "vault"), { recursive: true, mode: 0o700 })],
    ] as const) {
      it(`doctor of ${what} says that there is no vault, exits 8, and creates nothing`, async () => {
        const empty = join(temporaryDirectory(), "home");
        make(empty);
        const there = existsSync(empty);
        if (there) chmodSync(empty, 0o700);
        const { code, stdout } = await run(["doctor", "--fix", "--home", empty]);
        expect(code).to.equal(8);
        expect(stdout).to.contain("no vault").and.to.contain(empty);
        expect(existsSync(empty)).to.equal(there);
      });
    }

    for (const args of [["--nonsense"], ["x"], ["--home"], ["--home", ""], ["--passphrase-fd", "x"]]) {
      it(`doctor ${args.join(" ")} exits 2`, async () => {
        const { code, stdout, stderr } = await run(["doctor", ...args]);
        expect(code).to.equal(2);
        expect(stdout).to.equal("");
        expect(stderr).to.match(/^strongroom: /);
      });
    }
  });

  describe("the passphrase", () => {
    const texts: readonly (readonly [string, string | Uint8Array, number, string])[] = [
      ["with a newline", `${passphrase}\n`, 0, ""],
      ["without a newline", passphrase, 0, ""],
      ["with Windows' newline", `${passphrase}\r\n`, 0, ""],
      ["with two newlines", `${passphrase}\n\n`, 9, "wrong"],
      ["that is wrong", "wrong-canary", 9, "wrong"],
      ["that is empty", "\n", 2, "empty"],
      ["of 1024 bytes", `${"x".repeat(1024)}\n`, 9, "wrong"],
      ["of 1025 bytes", `${"x".repeat(1025)}\n`, 2, "longer than 1024"],
      ["of 5000 bytes", "x".repeat(5000), 2, "longer than 1024"],
      ["that is not UTF-8", Uint8Array.of(0xff, 0xfe), 2, "UTF-8"],
    ];
    for (const [what, text, want, says] of texts) {
      it(`doctor exits ${want} for a passphrase file ${what}`, async () => {
        const { code, stdout, stderr } = await run(["doctor", "--home", home, "--passphrase-file", fileWith(text)]);
        expect(code).to.equal(want);
        expect(stderr).to.contain(says).and.not.to.contain("canary");
        if (want === 0) expect(stdout).to.contain("opened with the passphrase");
        else expect(stdout).to.equal("");
      });
    }

    it("a passphrase may have every character that JSON escapes", async () => {
      const odd = '"\\\t\u0001\u001f/ä😀\u007f';
      const server = await startTestServer(realScryptCost);
      await mustInit(server, { passphrase: odd });
      await mustPut(server, "a", "v");
      const { exit } = await doctor(server.home, "--passphrase-file", fileWith(odd));
      expect(exit).to.equal(0);
    });

    it("a passphrase comes from standard input or from any descriptor", async () => {
      for (const [flags, inputs] of [
        [["--passphrase-file", "-"], [`${passphrase}\n`]],
        [["--passphrase-fd", "0"], [passphrase]],
        [
          ["--passphrase-fd", "4"],
          ["", "", `${passphrase}\n`],
        ],
      ] as const) {
        const { code, stdout } = await runWithoutTerminal(["doctor", "--home", home, ...flags], inputs);
        expect(code, flags.join(" ")).to.equal(0);
        expect(stdout).to.contain("opened with the passphrase");
      }
    });

    const refused: readonly (readonly [readonly string[], string])[] = [
      [["--passphrase-file", "/missing/file"], "the passphrase file cannot be read (ENOENT)"],
      [["--passphrase-fd", "97"], "descriptor 97"],
      [["--passphrase-file", "x", "--passphrase-fd", "3"], "cannot be used together"],
      [["--open", "--non-interactive"], "--passphrase-file"],
      [["--open"], "--passphrase-file"],
    ];
    for (const [flags, says] of refused) {
      it(`doctor ${flags.join(" ")} without a terminal exits 2 and says what to do`, async () => {
        const { code, stderr } = await run(["doctor", "--home", home, ...flags]);
        expect(code).to.equal(2);
        expect(stderr).to.contain(says);
      });
    }
  });

  describe("the terminal", () => {
    before(function () {
      needs(this, hasPython(), "Python");
    });

    const question = "Passphrase of the vault: ";
    const ask = (reaction: { keys?: string | Uint8Array; signal?: number }, flags: readonly string[] = ["--open"]) =>
      runOnTerminal(["doctor", "--home", home, ...flags], { question, ...reaction });

    const typed: readonly (readonly [string, string | Uint8Array, number])[] = [
      ["Enter", `${passphrase}\r`, 0],
      ["Ctrl-D after it", `${passphrase}\u0004`, 0],
      ["a mistake removed by Backspace", `${passphrase}xä😀\u007f\u007f\b\r`, 0],
      ["a line removed by Ctrl-U", `nonsense\u0015${passphrase}\r`, 0],
      ["arrow and function keys, which are ignored", `\u001b[A${passphrase}\u001bOP\u001b[3~\r`, 0],
      ["too much, removed", `${"x".repeat(1100)}\u0015${passphrase}\r`, 0],
      ["nothing", "\r", 2],
      ["too much", `${"x".repeat(1100)}\r`, 2],
      ["Ctrl-C", `${passphrase}\u0003`, 13],
      ["Ctrl-D alone", "\u0004", 13],
    ];
    for (const [what, keys, want] of typed) {
      it(`doctor on a terminal accepts ${what}: exit ${want}, nothing shown, terminal restored`, async () => {
        const { code, shown, echoedWhileAsking, echoesAfter } = await ask({ keys });
        expect(code, shown).to.equal(want);
        expect({ echoedWhileAsking, echoesAfter }).to.deep.equal({ echoedWhileAsking: false, echoesAfter: true });
        expect(shown).not.to.match(/correct|xxx|nonsense/);
      });
    }

    it("doctor on a terminal exits 9 after three wrong passphrases, shows none, and restores the terminal", async () => {
      const tries = Array.from({ length: 3 }, () => ({ question, keys: "nonsense\r" }));
      const { code, shown, echoedWhileAsking, echoesAfter } = await runOnTerminal(
        ["doctor", "--home", home, "--open"],
        tries,
      );
      expect(code, shown).to.equal(9);
      expect({ echoedWhileAsking, echoesAfter }).to.deep.equal({ echoedWhileAsking: false, echoesAfter: true });
      expect(shown).to.contain("1 try left").and.not.to.contain("nonsense");
    });

    for (const [name, signal] of [
      ["SIGHUP", 1],
      ["SIGINT", 2],
      ["SIGQUIT", 3],
      ["SIGTERM", 15],
    ] as const) {
      it(`doctor restores the terminal when ${name} ends it`, async () => {
        const { code, echoedWhileAsking, echoesAfter } = await ask({ signal });
        expect(Math.abs(code)).to.be.oneOf([signal, 128 + signal]);
        expect({ echoedWhileAsking, echoesAfter }).to.deep.equal({ echoedWhileAsking: false, echoesAfter: true });
      });
    }

    it("doctor --non-interactive asks nothing on a terminal", async () => {
      const { code, echoedWhileAsking } = await ask({}, ["--open", "--non-interactive"]);
      expect({ code, echoedWhileAsking }).to.deep.equal({ code: 2, echoedWhileAsking: null });
    });

    it("doctor on a terminal shows colours unless NO_COLOR is set, and a progress bar that disappears", async () => {
      const [args, silent] = [["doctor", "--home", home], { question: "never asked" }];
      const coloured = await runOnTerminal(args, silent);
      expect(coloured.shown)
        .to.contain("\u001b[32mno problems found")
        .and.to.contain("\rchecking [")
        .and.to.contain("\r\u001b[K");
      const plain = await runOnTerminal(args, silent, { NO_COLOR: "1" });
      expect(plain.shown).to.contain("no problems found").and.not.to.contain("\u001b[32m");
    });
  });

  describe("running servers", () => {
    it("doctor checks a running vault, unlocked and locked, without disturbing it", async () => {
      const server = await startProcess();
      await mustInit(server);
      await mustPut(server, "a/b", "v");
      const unlocked = await inspect(server.home, { open: true });
      expect(unlocked).to.deep.include({ exit: 0, findings: [] });
      expect(unlocked.json).to.deep.include({ opened: true, secrets: 1 });
      expect(unlocked.json["server"]).to.include({ pid: server.child.pid });
      expect((await mustGet(server, "a/b"))["value"]).to.equal("v");
      await mustLock(server);
      expect(await inspect(server.home, { fix: true, open: true })).to.deep.include({ exit: 0, findings: [] });
    });

    it("doctor finds nothing wrong with concurrent writes and deletes of a server", async () => {
      const server = await startProcess();
      await mustInit(server);
      let over = false;
      const writer = async (name: string) => {
        for (let n = 0; !over; n++) {
          const path = `/v1/secrets/${name}/${n % 7}/x`;
          await send(server, { method: "PUT", path, body: { value: "v".repeat(n % 5000) } });
          if (n % 3 === 0) await send(server, { method: "DELETE", path });
        }
      };
      const writers = Promise.all(["a", "b", "c", "d"].map(writer));
      try {
        for (let round = 0; round < 3; round++) {
          expect(await inspect(server.home, { open: true })).to.deep.include({ exit: 0, findings: [] });
        }
      } finally {
        over = true;
        await writers;
      }
    });

    it("doctor finds nothing wrong with secrets that a server re-seals at the same time", async () => {
      const server = await startProcess();
      await mustInit(server);
      for (const path of ["a", "b"]) await mustPut(server, path, "v");
      const file = fileWith(passphrase);
      let rotations = 0;
      const rotate = () => {
        if (rotations++ > 0) return; // at the first step: doctor has opened the header, but no secret yet
        const args = ["rotate-key", "--yes", "--passphrase-file", file, "--home", server.home];
        expect(spawnSync(node, [mainFile, ...args], { env: environment({}) }).status).to.equal(0);
      };
      expect(await inspect(server.home, { open: true }, rotate)).to.deep.include({ exit: 0, findings: [] });
      expect(rotations).to.be.above(0);
    });

    it("doctor fixes modes while a server runs, and leaves the rest until it is stopped", async () => {
      const server = await startProcess();
      await mustInit(server);
      await mustPut(server, "a", "v");
      writeFileSync(join(server.home, stray), "half", { mode: 0o600 });
      utimesSync(join(server.home, stray), longAgo, longAgo); // a young one may be a write in progress
      chmodSync(join(server.home, "vault/gen-1/secrets/a.sealed"), 0o644);
      const { exit, findings } = await inspect(server.home, { fix: true });
      expect(exit).to.equal(12);
      expect(findings.map(({ code, fixed }) => [code, fixed])).to.deep.equal([
        ["wrong-mode", true],
        ["stray-temp", false],
      ]);
      expect((await run(["doctor", "--home", server.home])).stdout).to.contain("stop the server");
      await server.stop();
      expect(await inspect(server.home, { fix: true })).to.include({ exit: 0 });
      expect(existsSync(join(server.home, "vault/server.pid"))).to.equal(false);
    });

    it("doctor finds after a kill only leftovers that --fix removes", async () => {
      const server = await startProcess();
      await mustInit(server);
      const puts = Array.from({ length: 40 }, (_, n) =>
        send(server, { method: "PUT", path: `/v1/secrets/${n}/x`, body: { value: "v" } }).catch(() => null),
      );
      await puts[0];
      server.child.kill("SIGKILL");
      await Promise.all([server.ended, ...puts]);
      writeFileSync(join(server.home, stray), "half", { mode: 0o600 }); // at least this
      const { exit, findings } = await inspect(server.home, { fix: true, open: true });
      expect(exit).to.equal(0);
      expect(findings.map(({ code }) => code)).to.include("stray-temp");
      for (const { code } of findings) expect(code).to.be.oneOf(["stray-temp", "stray-directory"]);
    });

    it("doctor ignores an interrupted init", async () => {
      const server = await startTestServer(realScryptCost);
      await mustInit(server);
      await server.stop();
      rmSync(join(server.home, "vault/current"));
      expect(await inspect(server.home, { fix: true })).to.deep.include({ exit: 8, findings: [] });
    });

    it("doctor --fix leaves a home that a server can start on", async () => {
      const damaged = copyHome(home);
      rmSync(join(damaged, "vault/current"));
      chmodSync(join(damaged, "token"), 0o644);
      expect((await run(["serve", "--port", "0"], { STRONGROOM_HOME: damaged })).code).to.equal(1);
      expect(await inspect(damaged, { fix: true })).to.include({ exit: 0 });
      const server = await startProcess([], { STRONGROOM_HOME: damaged });
      expect(server.startLine).to.contain("listens");
    });
  });
});
