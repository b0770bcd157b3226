/** strongroom audit: what it shows, verifies and refuses. */
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { passphrase, realScryptCost, shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import {
  mustCreateToken,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";
import { parseLog, readLog, rebuilt, writeLog } from "../audit/sample-log.js";
import { must, strongroom, testRows } from "./command-rows.js";
import { start } from "./run-command.js";

describe("audit", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/a", "v");
    await mustPut(started, "other", "v");
    const { token } = await mustCreateToken(started, { name: "ci" });
    await send(started, { path: "/v1/secrets/app/a", token });
    const { id } = mustSucceed(
      await send(started, { method: "POST", path: "/v1/keys", body: { passphrase, label: "laptop" } }),
    );
    mustSucceed(await send(started, { method: "DELETE", path: `/v1/keys/${String(id)}` }));
    await send(started, { method: "POST", path: "/v1/batch", body: { operations: [{ move: "other", to: "app/b" }] } });
  });
  const here = () => ({ STRONGROOM_HOME: server().home });
  const time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z";

  testRows(here, {
    "all of it": {
      args: ["audit", "show"],
      exit: 0,
      out: new RegExp(`^${time}  1  -  -  start\n[^]*  root  127\\.0\\.0\\.1  put  app/a  200\n`),
    },
    "the end": {
      args: ["audit", "tail", "--limit", "1"],
      exit: 0,
      out: /^.* {2}move {2}other {2}to app\/b {2}200 {2}in a batch\n$/,
    },
    "what a token did": {
      args: ["audit", "show", "--token", "ci"],
      exit: 0,
      out: new RegExp(`^${time}  \\d+  ci  127\\.0\\.0\\.1  get  app/a  200\n$`),
    },
    "the label of a deleted key": {
      args: ["audit", "tail", "--limit", "3"],
      exit: 0,
      out: / {2}key-delete {2}200 {2}name \w+ {2}kind key {2}label laptop\n/,
    },
    "a subtree as JSON": {
      args: ["audit", "show", "--path", "app/", "--json"],
      exit: 0,
      out: /^\{"records":\[\{"seq":\d+,"time":"[^"]+","event":"put",.*"event":"get",.*"event":"move",[^{]*\}\]\}\n$/,
    },
    "nothing since a time to come": {
      args: ["audit", "show", "--since", "2100-01-01"],
      exit: 0,
      out: "",
      err: /^no records\n$/,
    },
    "the last of what matches": {
      args: ["audit", "show", "--since", "1h", "--path", "app/a", "--limit", "1"],
      exit: 0,
      out: / {2}get {2}app\/a {2}200\n$/,
    },
    "an invalid time": {
      args: ["audit", "show", "--since", "noon"],
      exit: 2,
      err: /--since must be a duration, such as 2h, or a time/,
    },
    "a flag of another action": {
      args: ["audit", "verify", "--token", "ci"],
      exit: 2,
      err: /--token has no effect with verify/,
    },
    "a database's password without --open": {
      args: ["audit", "verify", "--store-password-file", "file"],
      exit: 2,
      err: /--store-password-file has no effect without --open/,
    },
    "the head": { args: ["audit", "head"], exit: 0, out: /^\{"log":"[\w-]{22}","seq":\d+,"chain":"[\w-]{43}"\}\n$/ },
    "a log without problems": {
      args: ["audit", "verify"],
      exit: 0,
      out: /^\d+ records in 1 file, the last is \d+\n1 checkpoint; they cover the log up to record \d+\nno problems found\n$/,
    },
    "a file that is no head": {
      args: ["audit", "verify", "--head", "/dev/null"],
      exit: 2,
      err: /is not what strongroom audit head prints/,
    },
  });

  it("tail --notify shows new records by notify-send, without markup of theirs", async () => {
    const directory = temporaryDirectory();
    const shown = join(directory, "shown");
    const program = `#!/bin/sh\nprintf '%s|' "$@" >> ${shown}.new && mv ${shown}.new ${shown}\n`;
    writeFileSync(join(directory, "notify-send"), program, { mode: 0o755 });
    const path = `${directory}:${process.env["PATH"] ?? ""}`;
    const args = ["audit", "tail", "--notify", "--path", "notified/", "--limit", "1"];
    const { child, finished } = start(server(), args, { environment: { PATH: path } });
    for (let n = 0; !existsSync(shown); n++) {
      await mustPut(server(), `notified/<${n}>`, "never-shown");
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    child.kill("SIGINT");
    await finished;
    const text = readFileSync(shown, "utf8");
    expect(text)
      .to.match(/^--app-name=Strongroom\|--\|Strongroom: /)
      .and.to.contain("root put notified/");
    expect(text).not.to.contain("never-shown");
  });

  it("tail --notify says at once that notify-send is missing", async () => {
    const { finished } = start(server(), ["audit", "tail", "--notify"], {
      environment: { PATH: temporaryDirectory() },
    });
    const { code, stderr, stdout } = await finished;
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: "" });
    expect(stderr).to.contain("notify-send is not installed: install libnotify");
  });

  it("tail -f prints records as they come, until it is interrupted", async () => {
    const { child, finished } = start(server(), ["audit", "tail", "-f", "--limit", "1", "--json"]);
    await once(child.stdout, "data");
    await mustGet(server(), "app/a");
    const [later] = await once(child.stdout, "data");
    expect(String(later)).to.match(/^\{"seq":\d+,.*"event":"get",.*\}\n$/);
    child.kill("SIGINT");
    expect((await finished).code).to.equal(0);
  });

  it("verify judges checkpoints with the passphrase when the server is locked, or there is none", async () => {
    const other = await startLocalServer(realScryptCost);
    const environment = { STRONGROOM_HOME: other.home };
    await mustInit(other);
    await must(environment, ["audit", "tail"]); // from here on the log is open: a lock makes a checkpoint
    await mustLock(other);
    expect(await must(environment, ["audit", "verify"])).to.contain("not checked: unlock the server, or use --open");
    const open = ["audit", "verify", "--passphrase-file", "-"];
    expect(await must(environment, open, `${passphrase}\n`)).to.match(
      /^2 checkpoints; they cover the log up to record \d+/m,
    );
    await other.stop();
    expect(await must(environment, open, `${passphrase}\n`)).to.contain("no problems found");
    expect((await strongroom(environment, open, "wrong\n")).code).to.equal(9);
  });

  it("a backup contains the audit only with --with-audit, and it verifies where that is restored", async () => {
    const other = await startLocalServer(realScryptCost);
    await mustInit(other);
    await mustPut(other, "a", "v");
    const directory = temporaryDirectory();
    const [plain, whole] = [join(directory, "plain.tar"), join(directory, "whole.tar")];
    await must({ STRONGROOM_HOME: other.home }, ["backup", plain]);
    expect(await must({ STRONGROOM_HOME: other.home }, ["backup", whole, "--with-audit"])).to.match(/^1 secret saved/);
    await other.stop();
    const restored = { STRONGROOM_HOME: join(directory, "home") };
    await must(restored, ["restore", whole]);
    const open = ["audit", "verify", "--passphrase-file", "-"];
    expect(await must(restored, open, `${passphrase}\n`)).to.match(/^1 checkpoint; [\s\S]*no problems found\n$/m);
    const without = { STRONGROOM_HOME: join(directory, "other") };
    await must(without, ["restore", plain]);
    expect(await must(without, ["audit", "verify"])).to.contain("there is no audit log\n");
  });

  it("verify names what was changed, with the chain recomputed, and what was cut", async () => {
    const other = await startLocalServer(realScryptCost);
    const environment = { STRONGROOM_HOME: other.home };
    await mustInit(other);
    for (let n = 0; n < 5; n++) await mustPut(other, `s${n}`, "v");
    await mustLock(other);
    const head = join(temporaryDirectory(), "head.json");
    writeFileSync(head, await must(environment, ["audit", "head"]));
    await other.stop();
    const withHead = ["audit", "verify", "--head", head];
    expect(await must(environment, withHead)).to.contain("no problems found");
    const directory = join(other.home, "audit");
    const { header, groups } = parseLog(readLog(directory));
    const verify = async (args: readonly string[], input = "") => {
      const { code, stdout } = await strongroom(environment, args, input);
      expect(code).to.equal(12);
      return stdout;
    };

    const edited = groups.map(({ file, lines }) => ({
      file,
      lines: lines.map((line) => line.replace('"put"', '"get"')),
    }));
    writeLog(directory, rebuilt(header, edited));
    const file = join(directory, "audit-000001.jsonl");
    expect(await must(environment, ["audit", "verify"])).to.contain("no problems found"); // neither key nor head
    const open = ["audit", "verify", "--passphrase-file", "-"];
    expect(await verify(open, `${passphrase}\n`)).to.match(/the checkpoint in record \d+ is not the vault's/);
    expect(await verify(withHead)).to.match(/this is not the log of the head that was given/);

    writeLog(directory, rebuilt(header, groups.slice(0, 2)));
    expect(await verify(withHead)).to.match(/the log was cut: it ends with record \d+, and once had \d+/);

    writeFileSync(file, readFileSync(file, "utf8").replace('"start"', '"stopp"'));
    expect(await verify(["audit", "verify", "--json"])).to.contain(
      '"problems":[{"code":"changed","file":"audit-000001.jsonl"',
    );
  });
});
