/** Secrets through the command line: get, put, ls, find, rm, mv, cp, generate; bytes, metadata, refusals. */
import { writeFileSync } from "node:fs";
import * as nodeFiles from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { temporaryDirectory } from "../support/clean-up.js";
import { mustGet, mustInit, mustPut } from "../support/client.js";
import { shareTestServer, startTestServer } from "../support/server.js";
import { must, strongroom, testRows } from "./strongroom.js";

describe("secrets on the command line", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/db/password", { value: "s3cr3t", type: "password", description: "The main Database" });
    await mustPut(started, "app/db/name", "täglich");
    await mustPut(started, "tls/key", "line 1\nline 2\n");
    for (const name of ["old", "older", "kept"]) await mustPut(started, `many/${name}`, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  describe("get, ls and find", () => {
    const entry = '"path":"app/db/password","metadata":\\{"type":"password","description":"The main Database"\\}';
    testRows(here, {
      "the bare value, without a newline": { args: ["get", "app/db/password"], exit: 0, out: "s3cr3t" },
      "what is not ASCII": { args: ["get", "app/db/name"], exit: 0, out: "täglich" },
      "several lines": { args: ["get", "tls/key", "-q"], exit: 0, out: "line 1\nline 2\n" },
      "as JSON": {
        args: ["get", "app/db/password", "--json"],
        exit: 0,
        out: new RegExp(`^\\{${entry}.*"value":"s3cr3t"\\}\n$`),
      },
      "no such secret": { args: ["get", "app/nothing"], exit: 4, err: /no secret at app\/nothing; strongroom ls/ },
      "no such path": { args: ["get", "app//x"], exit: 2, err: /empty segment/ },
      "an empty path": { args: ["get", ""], exit: 2, err: /empty/ },
      "no path": { args: ["get"], exit: 2, err: /strongroom get --help/ },
      "no clipboard": { args: ["get", "app/db/password", "-c"], more: { PATH: "/nowhere" }, exit: 1, err: /xclip/ },
      "all of a folder": { args: ["ls", "app/"], exit: 0, out: "app/db/name\napp/db/password\n" },
      "nothing under a prefix": { args: ["ls", "nothing/"], exit: 0 },
      "a table": {
        args: ["ls", "app/db/p", "--long"],
        exit: 0,
        out: /^app\/db\/password {2}password {5}\d{4}-\d\d-\d\d \d\d:\d\dZ {2}The main Database\n$/,
      },
      "a list as JSON": {
        args: ["ls", "app/db/p", "--json"],
        exit: 0,
        out: new RegExp(`^\\{"entries":\\[\\{${entry}[^\\]]*\\],"damaged":\\[\\]\\}\n$`),
      },
      "found by path": { args: ["find", "DB/NA"], exit: 0, out: "app/db/name\n" },
      "found by description": { args: ["find", "main data"], exit: 0, out: "app/db/password\n" },
      "values are not searched": { args: ["find", "s3cr3t"], exit: 4, err: /strongroom ls/ },
      "found as JSON": {
        args: ["find", "database", "--json"],
        exit: 0,
        out: /^\{"entries":\[\{"path":"app\/db\/password".*\n$/,
      },
      "nothing found as JSON": { args: ["find", "nowhere", "--json"], exit: 4, out: '{"entries":[],"damaged":[]}\n' },
      "folders to complete": { args: ["complete-paths", ""], exit: 0, out: /^app\/\nmany\/\n(?:put\/\n)?tls\/\n$/ },
      "paths to complete": { args: ["complete-paths", "app/db/"], exit: 0, out: "app/db/name\napp/db/password\n" },
    });
  });

  describe("put", () => {
    const file = (bytes: string) => {
      const path = join(temporaryDirectory(), "value");
      writeFileSync(path, bytes);
      return path;
    };
    const stored: readonly (readonly [string, readonly string[], string | Uint8Array, string])[] = [
      ["drops one newline of a single line", [], "value\n", "value"],
      ["drops Windows' newline of a single line", [], "value\r\n", "value"],
      ["drops no more than one newline", [], "value\n\n", "value\n\n"],
      ["keeps the end of several lines", [], "a\nb\n", "a\nb\n"],
      ["keeps all with --raw", ["--raw"], "value\n", "value\n"],
      ["takes - for standard input", ["-"], "value\n", "value"],
      ["takes --from-file - for standard input", ["--from-file", "-"], "value", "value"],
      ["takes NUL, control characters and quotes", [], 'a\0b"\\\u0001\t', 'a\0b"\\\u0001\t'],
      ["takes what is not ASCII", [], "pâté 😀\n", "pâté 😀"],
      ["takes a value of a mebibyte", [], "x".repeat(1_048_576), "x".repeat(1_048_576)],
      ["takes an empty value when told", ["--allow-empty"], "", ""],
    ];
    it("put stores bytes as they are, but for a newline that ends a single line", async () => {
      const store = async ([what, flags, input, want]: (typeof stored)[number]) => {
        const path = `put/${what}`;
        const { code, stdout, stderr } = await strongroom(here(), ["put", path, ...flags], input);
        expect({ code, stderr }, what).to.deep.equal({ code: 0, stderr: "" });
        expect(stdout).to.equal(`${path} stored (${Buffer.byteLength(want)} bytes)\n`);
        expect((await mustGet(server(), path))["value"], what).to.equal(want);
      };
      await pMap(stored, store, { concurrency: 4 });
    });

    testRows(here, {
      "an argument as a value": {
        args: ["put", "refused/x", "canary"],
        exit: 2,
        err: /^(?!.*canary).*others could read/s,
      },
      "an empty value": { args: ["put", "refused/x"], exit: 2, err: /--allow-empty/ },
      "what is not UTF-8": { args: ["put", "refused/x"], input: Uint8Array.of(0xff, 0x0a), exit: 2, err: /base64/ },
      "more than the server takes": { args: ["put", "refused/x"], input: "x".repeat(1_048_577), exit: 2 },
      "a file that is not there": { args: ["put", "refused/x", "--from-file", "/missing"], exit: 2, err: /ENOENT/ },
      "two places for one value": { args: ["put", "refused/x", "-", "--from-file", "/f"], exit: 2, err: /not both/ },
      "an unknown type": { args: ["put", "refused/x", "--type", "secret"], input: "v", exit: 2, err: /api-key/ },
      "a path that cannot be": { args: ["put", "put/../x"], input: "v", exit: 2, err: /\.\./ },
      "no replacing when forbidden": { args: ["put", "tls/key", "--no-clobber"], input: "v", exit: 7, err: /tls\/key/ },
      "a trial": { args: ["put", "refused/x", "--dry-run"], input: "v", exit: 0, out: /would be stored/ },
      "a trial of replacing": {
        args: ["put", "tls/key", "--dry-run", "--json"],
        input: "v",
        exit: 0,
        out: '{"ok":true,"dryRun":true,"path":"tls/key","replaced":true}\n',
      },
    });

    it("nothing of what was refused or tried was stored", async () => {
      expect(await must(here(), ["ls", "refused/x"])).to.equal("");
      expect((await mustGet(server(), "tls/key"))["value"]).to.equal("line 1\nline 2\n");
    });

    it("put replaces what is there, and keeps its type and description unless told", async () => {
      const put = (...flags: string[]) => must(here(), ["set", "meta", "--json", ...flags], "v");
      const flags = ["--type", "api-key", "--description", "for the robot"];
      const first = JSON.parse(await put(...flags));
      const metadata = { type: "api-key", description: "for the robot" };
      expect(first).to.deep.equal({ ok: true, path: "meta", bytes: 1, replaced: false, metadata });
      expect(JSON.parse(await put())).to.deep.include({ replaced: true, metadata });
      expect(JSON.parse(await put("--type", "other")).metadata).to.deep.equal({ ...metadata, type: "other" });
      expect(JSON.parse(await put("--description", "")).metadata).to.deep.equal({ type: "other" });
      expect(JSON.parse(await put("--no-keep")).metadata).to.deep.equal({});
    });

    it("put takes a value from a file, and says nothing with -q", async () => {
      expect(await must(here(), ["put", "put/file", "-q", "--from-file", file("from a file\n")])).to.equal("");
      expect((await mustGet(server(), "put/file"))["value"]).to.equal("from a file");
    });
  });

  describe("mv and cp", () => {
    const from = "copy/from";
    beforeEach(() => mustPut(server(), from, { value: "v\n", type: "other", description: "d" }));
    const metadata = { type: "other", description: "d" };

    it("cp keeps value, type and description, and the original", async () => {
      expect(await must(here(), ["cp", from, "copy/to"])).to.equal("copy/from copied to copy/to\n");
      for (const path of [from, "copy/to"])
        expect(await mustGet(server(), path)).to.deep.include({ value: "v\n", metadata });
    });

    it("mv keeps value, type and description, and leaves nothing behind", async () => {
      expect(await must(here(), ["mv", from, "moved/", "--json"])).to.equal(
        '{"ok":true,"from":"copy/from","to":"moved/from","replaced":false}\n',
      );
      expect(await mustGet(server(), "moved/from")).to.deep.include({ value: "v\n", metadata });
      expect(await must(here(), ["ls", from])).to.equal("");
    });

    it("both overwrite with --force only", async () => {
      await mustPut(server(), "copy/there", "old");
      for (const command of ["cp", "mv"]) {
        const { code, stderr } = await strongroom(here(), [command, from, "copy/there"]);
        expect(code).to.equal(7);
        expect(stderr).to.contain("--force");
        expect((await mustGet(server(), "copy/there"))["value"]).to.equal("old");
      }
      await must(here(), ["mv", from, "copy/there", "--force"]);
      expect((await mustGet(server(), "copy/there"))["value"]).to.equal("v\n");
    });

    testRows(here, {
      "onto itself": { args: ["mv", "tls/key", "tls/key"], exit: 2, err: /same/ },
      "onto itself by its folder": { args: ["mv", "tls/key", "tls/", "--force"], exit: 2, err: /same/ },
      "from nothing": { args: ["mv", "copy/nothing", "copy/x"], exit: 4 },
      "to a path that cannot be": { args: ["cp", "tls/key", "a//b"], exit: 2 },
      "a trial to copy": { args: ["cp", "tls/key", "copy/x", "--dry-run"], exit: 0, out: /would be copied/ },
      "a trial to move": { args: ["mv", "tls/key", "copy/x", "--dry-run"], exit: 0, out: /would be moved/ },
      "a trial that would overwrite": { args: ["mv", "tls/key", "app/db/name", "--dry-run"], exit: 7 },
    });

    it("mv says what stands when the old path cannot be deleted", async () => {
      const unlink = async (path: Parameters<typeof nodeFiles.unlink>[0]) => {
        if (!String(path).endsWith("stuck.sealed")) return nodeFiles.unlink(path);
        throw Object.assign(new Error("the disk says no"), { code: "EROFS" });
      };
      const stuck = await startTestServer({ files: { ...nodeFiles, unlink } });
      await mustInit(stuck);
      await mustPut(stuck, "stuck", "v");
      const { code, stderr } = await strongroom({ STRONGROOM_HOME: stuck.home }, ["mv", "stuck", "free"]);
      expect(code).to.equal(1);
      expect(stderr).to.contain("free has the secret, and stuck may still have it too");
      for (const path of ["stuck", "free"]) expect((await mustGet(stuck, path))["value"]).to.equal("v");
    });
  });

  describe("rm", () => {
    testRows(here, {
      "without a way to ask": { args: ["rm", "many/kept"], exit: 2, err: /no terminal.*--force/ },
      "that may not ask": { args: ["rm", "many/kept", "--non-interactive"], exit: 2, err: /--force/ },
      "of one that is not there": { args: ["rm", "-f", "many/kept", "many/none"], exit: 4, err: /many\/none: nothing/ },
      "a trial": { args: ["rm", "many/kept", "--dry-run"], exit: 0, out: /would be deleted: many\/kept/ },
    });

    it("rm deletes all that it is given, and those alone", async () => {
      expect(await must(here(), ["rm", "--force", "many/old", "many/older"])).to.equal(
        "deleted: many/old, many/older\n",
      );
      expect(await must(here(), ["ls", "many/"])).to.equal("many/kept\n");
    });
  });

  describe("generate", () => {
    const generated: readonly (readonly [string, readonly string[], RegExp])[] = [
      ["32 letters and digits", [], /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9]{32}$/],
      ["a length", ["--length", "3"], /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{3}$/],
      [
        "sets, one of each at least",
        ["--length", "4", "--sets", "lower,symbols,digits,upper"],
        /^(?=.*[^A-Za-z0-9]).{4}$/,
      ],
      ["one set", ["--sets", "hex", "--length", "64"], /^[0-9a-f]{64}$/],
      ["words", ["--words", "6"], /^[a-z]+(?:-[a-z-]+){5,}$/],
      ["words and what stands between", ["--words", "3", "--separator", " "], /^[a-z-]+(?: [a-z-]+){2}$/],
    ];
    it("generate makes what it is told to, and prints with --print what it has stored", async () => {
      const make = async ([what, flags, shape]: (typeof generated)[number]) => {
        const printed = await must(here(), ["generate", `gen/${what}`, "--print", ...flags]);
        expect(printed, what).to.match(shape);
        const want = { value: printed, metadata: { type: "password" } };
        expect(await mustGet(server(), `gen/${what}`)).to.deep.include(want);
      };
      await pMap(generated, make, { concurrency: 4 });
    });

    it("generate shows the value only when told", async () => {
      const said = await must(here(), ["generate", "gen/silent"]);
      const { value } = await mustGet(server(), "gen/silent");
      expect(said).to.contain("gen/silent stored, about 190 bits").and.not.to.contain(String(value));
      const json = await must(here(), ["generate", "gen/silent", "--force", "--json"]);
      const next = String((await mustGet(server(), "gen/silent"))["value"]);
      expect(next).not.to.equal(value);
      expect(JSON.parse(json)).to.deep.equal({
        ok: true,
        path: "gen/silent",
        bits: 190,
        replaced: true,
        copied: false,
      });
    });

    it("generate draws every character of a set, and each about as often as any other", async () => {
      const printed = await must(here(), ["generate", "gen/long", "-p", "--length", "4096", "--sets", "digits"]);
      const counts = [..."0123456789"].map((digit) => printed.split(digit).length - 1);
      const chiSquare = counts.reduce((sum, count) => sum + (count - 409.6) ** 2 / 409.6, 0);
      expect(chiSquare, "9 degrees of freedom: more than this once in 10^9 runs").to.be.below(62);
    });

    testRows(here, {
      "over what is there": { args: ["generate", "tls/key"], exit: 7, err: /--force/ },
      "fewer characters than sets": { args: ["generate", "gen/x", "--length", "2"], exit: 2, err: /--length/ },
      "an unknown set": { args: ["generate", "gen/x", "--sets", "emoji"], exit: 2, err: /lower, upper/ },
      "no length": { args: ["generate", "gen/x", "--length", "0"], exit: 2, err: /from 1 to 4096/ },
      "no clipboard": { args: ["generate", "gen/x", "-c"], more: { PATH: "/nowhere" }, exit: 1, err: /xclip/ },
      "a trial": { args: ["generate", "gen/x", "--dry-run", "--print"], exit: 0, out: /would be stored/ },
    });
  });
});
