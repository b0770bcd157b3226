/** Reading and storing secrets through the command line: get, ls, find, put; bytes, metadata, refusals. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { temporaryDirectory } from "../support/clean-up.js";
import { shareTestServer } from "../support/server.js";
import { mustGet, mustInit, mustPut } from "../support/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("secrets on the command line", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/db/password", { value: "s3cr3t", type: "password", description: "The main Database" });
    await mustPut(started, "app/db/name", "täglich");
    await mustPut(started, "tls/key", "line 1\nline 2\n");
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
      "folders to complete": { args: ["complete-paths", ""], exit: 0, out: /^app\/\n(?:put\/\n)?tls\/\n$/ },
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
      "a file that is not there": {
        args: ["put", "refused/x", "--from-file", "/missing"],
        exit: 2,
        err: /^(?!.*missing).*ENOENT.*spelled/s,
      },
      "two places for one value": { args: ["put", "refused/x", "-", "--from-file", "/f"], exit: 2, err: /not both/ },
      "an unknown type": { args: ["put", "refused/x", "--type", "secret"], input: "v", exit: 2, err: /api-key/ },
      "a path that cannot be": { args: ["put", "put/../x"], input: "v", exit: 2, err: /\.\./ },
      "no path": { args: ["put", ""], input: "v", exit: 2, err: /an argument: the path is empty/ },
      "an edit of a path that cannot be": { args: ["edit", "put//x"], exit: 2, err: /put\/\/x: the path has an empty/ },
      "a trial with a path that cannot be": { args: ["put", "x1/", "--dry-run"], input: "v", exit: 2, err: /x1\/: / },
      "a trial with more than the server takes": {
        args: ["put", "refused/x", "--dry-run"],
        input: "x".repeat(1_048_577),
        exit: 2,
        err: /has 1048577 bytes, and the server takes at most 1048576/,
      },
      "a trial with too long a description": {
        args: ["put", "refused/x", "--dry-run", "--description", "x".repeat(4097)],
        input: "v",
        exit: 2,
        err: /description has more than 4096 bytes/,
      },
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
});
