/** get, ls, find and put: bytes, metadata, and what they refuse. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("get, ls, find and put", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/db/password", { value: "s3cr3t", type: "password", description: "The main Database" });
    await mustPut(started, "app/db/name", "täglich");
    await mustPut(started, "tls/key", "line 1\nline 2\n");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  describe("get, ls and find", () => {
    const entry = '"path":"app/db/password","metadata":\\{"type":"password","description":"The main Database"\\}';
    testRows(here, {
      "the value without a newline": { args: ["get", "app/db/password"], exit: 0, out: "s3cr3t" },
      "a value beyond ASCII": { args: ["get", "app/db/name"], exit: 0, out: "täglich" },
      "several lines": { args: ["get", "tls/key", "-q"], exit: 0, out: "line 1\nline 2\n" },
      "as JSON": {
        args: ["get", "app/db/password", "--json"],
        exit: 0,
        out: new RegExp(`^\\{${entry}.*"value":"s3cr3t"\\}\n$`),
      },
      "a missing secret": { args: ["get", "app/nothing"], exit: 4, err: /no secret at app\/nothing; strongroom ls/ },
      "an invalid path": { args: ["get", "app//x"], exit: 2, err: /empty segment/ },
      "a folder's path": { args: ["get", "app/db/"], exit: 2, err: /names a folder.*strongroom ls app\/db\/$/m },
      "an empty path": { args: ["get", ""], exit: 2, err: /empty/ },
      "no path at all": { args: ["get"], exit: 2, err: /strongroom get --help/ },
      "no clipboard": { args: ["get", "app/db/password", "-c"], more: { PATH: "/nowhere" }, exit: 1, err: /xclip/ },
      "a whole folder": { args: ["ls", "app/"], exit: 0, out: "app/db/name\napp/db/password\n" },
      "nothing under a prefix": { args: ["ls", "nowhere"], exit: 4, err: /nothing under nowhere\/; strongroom ls/ },
      "nothing under a prefix, as JSON": {
        args: ["ls", "nowhere/", "--json"],
        exit: 4,
        out: '{"entries":[],"damaged":[]}\n',
        err: /^\{"error":"nothing under nowhere\/.*","code":"NOT_FOUND","exit":4\}\n$/,
      },
      "a misspelled folder": {
        args: ["ls", "ap/db"],
        exit: 4,
        err: /nothing under ap\/db\/\. Did you mean app\/db\/\?/,
      },
      "a prefix with a leading slash": {
        args: ["ls", "/app"],
        exit: 4,
        err: /no leading slash, try {2}strongroom ls app\n/,
      },
      "a reference in place of a path": {
        args: ["get", "strongroom://app/db/name"],
        exit: 2,
        err: /strongroom:\/\/app\/db\/name: a path is needed, not a reference: write app\/db\/name\n/,
      },
      "a reference to a field in place of a path": {
        args: ["get", "strongroom://app/db/name#user"],
        exit: 2,
        err: /write app\/db\/name; its field is shown by {2}strongroom get app\/db\/name --field user\n/,
      },
      "a field behind a path": {
        args: ["run", "--set", "USER=app/db/name#user", "--", "true"],
        exit: 4,
        err: /For the field user of app\/db\/name, use {2}strongroom:\/\/app\/db\/name#user {2}or/,
      },
      "fields behind two paths": {
        args: ["run", "--set", "A=app/db/name#a", "--set", "B=app/db/name#b", "--", "true"],
        exit: 4,
        err: /no secret at app\/db\/name#a, app\/db\/name#b: correct the paths; a field is written {2}strongroom:\/\//,
      },
      "a field behind a path that has no secret": {
        args: ["get", "app/db/nome#user"],
        exit: 4,
        err: /no secret at app\/db\/nome#user; strongroom ls/,
      },
      "a reference with one slash": {
        args: ["run", "--set", "A=strongroom:/app/db/name", "--", "true"],
        exit: 4,
        err: /no secret at strongroom:\/app\/db\/name: a reference begins with strongroom:\/\/\n/,
      },
      "a reference in place of a folder": {
        args: ["run", "--prefix", "strongroom://app/db/", "--", "true"],
        exit: 4,
        err: /a folder is needed, not a reference: write app\/db\/\n/,
      },
      "a path with a leading slash": {
        args: ["get", "/app/db/name"],
        exit: 2,
        err: /no leading slash, write app\/db\/name/,
      },
      "a folder": { args: ["get", "app/db"], exit: 4, err: /app\/db is a folder: strongroom ls app\/db\/\n/ },
      "a misspelled path": {
        args: ["get", "app/db/pasword"],
        exit: 4,
        err: /no secret at app\/db\/pasword\. Did you mean app\/db\/password\?/,
      },
      "a path that only shares the folder": {
        args: ["get", "app/db/nope"],
        exit: 4,
        err: /no secret at app\/db\/nope; strongroom ls {2}lists all secrets/,
      },
      "a path that is too long": {
        args: ["get", "a".repeat(2000)],
        exit: 2,
        err: /^strongroom: a{50,100}…: the path is longer than 1024 bytes\n$/,
      },
      "a table": {
        args: ["ls", "app/db/password", "--long"],
        exit: 0,
        out: /^app\/db\/password {2}password {5}\d{4}-\d\d-\d\d \d\d:\d\dZ {2}The main Database\n$/,
      },
      "a list as JSON": {
        args: ["ls", "app/db/password", "--json"],
        exit: 0,
        out: new RegExp(`^\\{"entries":\\[\\{${entry}[^\\]]*\\],"damaged":\\[\\]\\}\n$`),
      },
      "several values": { args: ["get", "app/db/password", "app/db/name"], exit: 0, out: "s3cr3t\ntäglich\n" },
      "several as JSON": {
        args: ["get", "app/db/name", "tls/key", "--json"],
        exit: 0,
        out: /^\{"secrets":\[\{"path":"app\/db\/name".*"value":"täglich"\},\{"path":"tls\/key".*"value":"line 1\\nline 2\\n"\}\]\}\n$/,
      },
      "several, one of several lines": {
        args: ["get", "app/db/name", "tls/key"],
        exit: 2,
        err: /^strongroom: tls\/key: cannot print multi-line values together: use --json/,
      },
      "several, some missing": {
        args: ["get", "app/db/name", "app/none", "no"],
        exit: 4,
        err: /^strongroom: no secret at app\/none, no: /,
      },
      "several to the clipboard": {
        args: ["get", "app/db/name", "tls/key", "-c"],
        exit: 2,
        err: /--copy takes one path/,
      },
      "a version of several": {
        args: ["get", "app/db/name", "tls/key", "--version", "1"],
        exit: 2,
        err: /--at takes one path/,
      },
      "found by path": { args: ["find", "DB/NA"], exit: 0, out: "app/db/name\n" },
      "found by description": { args: ["find", "main data"], exit: 0, out: "app/db/password\n" },
      "a text that only a value contains": { args: ["find", "s3cr3t"], exit: 4, err: /strongroom ls/ },
      "found as JSON": {
        args: ["find", "database", "--json"],
        exit: 0,
        out: /^\{"entries":\[\{"path":"app\/db\/password".*\n$/,
      },
      "nothing found as JSON": {
        args: ["find", "nowhere", "--json"],
        exit: 4,
        out: '{"entries":[],"damaged":[]}\n',
        err: /"exit":4/,
      },
      "completion of folders": { args: ["complete-paths", ""], exit: 0, out: /^app\/\n(?:put\/\n)?tls\/\n$/ },
      "completion of paths": { args: ["complete-paths", "app/db/"], exit: 0, out: "app/db/name\napp/db/password\n" },
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
      ["drops at most one newline", [], "value\n\n", "value\n\n"],
      ["keeps the end of several lines", [], "a\nb\n", "a\nb\n"],
      ["keeps CR LF of several lines", [], "a\r\nb\r\n", "a\r\nb\r\n"],
      ["keeps a CR alone", [], "a\r", "a\r"],
      ["keeps a byte order mark with --raw", ["--raw"], "\ufeffvalue\r\n", "\ufeffvalue\r\n"],
      ["keeps all with --raw", ["--raw"], "value\n", "value\n"],
      ["accepts - for standard input", ["-"], "value\n", "value"],
      ["accepts --from-file - for standard input", ["--from-file", "-"], "value", "value"],
      ["accepts NUL, control characters and quotes", [], 'a\0b"\\\u0001\t', 'a\0b"\\\u0001\t'],
      ["accepts text beyond ASCII", [], "pâté 😀\n", "pâté 😀"],
      ["accepts a value of 1 MiB", [], "x".repeat(1_048_576), "x".repeat(1_048_576)],
      ["accepts a single byte", [], "v", "v"],
      ["accepts an empty value with --allow-empty", ["--allow-empty"], "", ""],
    ];
    it("put leaves out a byte order mark, and says so", async () => {
      const { code, stderr } = await strongroom(here(), ["put", "put/marked"], "\ufeffvalue\n");
      expect({ code, stderr }).to.deep.equal({
        code: 0,
        stderr: "note: standard input begins with a byte order mark, which is left out; --raw keeps it\n",
      });
      expect((await mustGet(server(), "put/marked"))["value"]).to.equal("value");
    });

    it("put stores bytes unchanged, except for a newline that ends a single line", async () => {
      const store = async ([what, flags, input, want]: (typeof stored)[number]) => {
        const path = `put/${what}`;
        const { code, stdout, stderr } = await strongroom(here(), ["put", path, ...flags], input);
        expect({ code, stderr }, what).to.deep.equal({ code: 0, stderr: "" });
        const bytes = Buffer.byteLength(want);
        expect(stdout).to.equal(`${path} stored (${bytes} byte${bytes === 1 ? "" : "s"})\n`);
        expect((await mustGet(server(), path))["value"], what).to.equal(want);
      };
      await pMap(stored, store, { concurrency: 4 });
    });

    testRows(here, {
      "a value as an argument": {
        args: ["put", "refused/x", "canary"],
        exit: 2,
        err: /^(?!.*canary).*other users could read/s,
      },
      "an empty value": { args: ["put", "refused/x"], exit: 2, err: /--allow-empty/ },
      "more than the server accepts": {
        args: ["put", "refused/x"],
        input: "x".repeat(2_000_000),
        exit: 2,
        err: /the value is 2,000,000 bytes; the limit is 1,048,576/,
      },
      "a missing file": {
        args: ["put", "refused/x", "--from-file", "/missing"],
        exit: 2,
        err: /^(?!.*missing).*ENOENT.*no such file/s,
      },
      "two sources for one value": {
        args: ["put", "refused/x", "-", "--from-file", "/f"],
        exit: 2,
        err: /use only one/,
      },
      "an unknown type": { args: ["put", "refused/x", "--type", "secret"], input: "v", exit: 2, err: /api-key/ },
      "an invalid path to put": { args: ["put", "put/../x"], input: "v", exit: 2, err: /\.\./ },
      "an empty path to put": { args: ["put", ""], input: "v", exit: 2, err: /^strongroom: the path is empty$/m },
      "an edit of an invalid path": { args: ["edit", "put//x"], exit: 2, err: /put\/\/x: the path has an empty/ },
      "a dry run with an invalid path": { args: ["put", "x1/", "--dry-run"], input: "v", exit: 2, err: /x1\/: / },
      "a dry run with more than the server accepts": {
        args: ["put", "refused/x", "--dry-run"],
        input: "x".repeat(1_048_577),
        exit: 2,
        err: /the value is 1,048,577 bytes; the limit is 1,048,576/,
      },
      "a dry run with too long a description": {
        args: ["put", "refused/x", "--dry-run", "--description", "x".repeat(4097)],
        input: "v",
        exit: 2,
        err: /description has more than 4096 bytes/,
      },
      "replacing with --no-clobber": { args: ["put", "tls/key", "--no-clobber"], input: "v", exit: 7, err: /tls\/key/ },
      "a dry run": { args: ["put", "refused/x", "--dry-run"], input: "v", exit: 0, out: /would be stored/ },
      "a dry run of replacing": {
        args: ["put", "tls/key", "--dry-run", "--json"],
        input: "v",
        exit: 0,
        out: '{"ok":true,"dryRun":true,"path":"tls/key","replaced":true}\n',
      },
    });

    it("a refused or dry put stores nothing", async () => {
      expect(await mustListPaths(server(), "refused/")).to.deep.equal([]);
      expect((await mustGet(server(), "tls/key"))["value"]).to.equal("line 1\nline 2\n");
    });

    it("put replaces a secret and keeps its type and description unless told otherwise", async () => {
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

    it("put reads a value from a file, and prints nothing with -q", async () => {
      expect(await must(here(), ["put", "put/file", "-q", "--from-file", file("from a file\n")])).to.equal("");
      expect((await mustGet(server(), "put/file"))["value"]).to.equal("from a file");
    });
  });
});
