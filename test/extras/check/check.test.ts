/** `strongroom check`: what it finds, what it leaves alone, and what it needs to know. */
import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { breachedIn } from "../../../src/extras/check/breaches.js";
import { judgeFolder } from "../../../src/extras/check/judge.js";
import { temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { shareLocalServer, startLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, send } from "../../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "../../cli/run-command.js";
import { makeClient } from "../../support/library.js";
import { hasPython, runOnTerminal } from "../../support/pseudo-terminal.js";

const strong = () => randomBytes(24).toString("base64url");
const sha1 = (text: string) => createHash("sha1").update(text).digest("hex").toUpperCase();
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

type Found = { readonly path: string; readonly problems: readonly string[]; readonly sameAs: readonly string[] };

describe("strongroom check", () => {
  const shared = strong();
  const server = shareLocalServer({ audit: "all" }, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/weak", "hunter2");
    await mustPut(started, "app/strong", strong());
    await mustPut(started, "app/one", shared);
    await mustPut(started, "app/two", shared);
    await mustPut(started, "app/username", "admin");
    await mustPut(started, "web/username", "admin");
    await mustPut(started, "web/expired", { value: strong(), expiresAt: inDays(-1) });
    await mustPut(started, "web/expiring", { value: strong(), expiresAt: inDays(10) });
  });
  const run = (...args: readonly string[]) => strongroom(server(), ["check", ...args]);
  const found = async (...args: readonly string[]) => {
    const { found } = JSON.parse((await run("--json", ...args)).stdout) as { readonly found: readonly Found[] };
    return Object.fromEntries(found.map(({ path, problems }) => [path, problems.join()]));
  };

  it("check finds weak, reused, expired and expiring secrets, and exits with 12", async () => {
    const { code, stdout, stderr } = await run();
    expect({ code, stderr }).to.deep.equal({ code: 12, stderr: "" });
    expect(stdout.split("\n").map((line) => line.replace(/20\d\d-\d\d-\d\d/, "DATE"))).to.deep.equal([
      "app/one       same value as app/two",
      "app/two       same value as app/one",
      "app/weak      very weak",
      "web/expired   expired DATE",
      "web/expiring  expires DATE",
      "8 secrets checked: 1 weak, 2 reused, 1 expired, 1 expiring; 2 not judged",
      "",
    ]);
    expect(stdout).not.to.contain("hunter2");
  });

  it("check examines a folder, and exits with 0 without findings", async () => {
    expect(await found("web", "--expiring", "1d")).to.deep.equal({ "web/expired": "expired" });
    await mustPut(server(), "good/key", strong());
    expect(mustDo(await run("good")).stdout).to.equal("1 secret checked: no problems found\n");
    mustRefuseWith(await run("nowhere"), 4, "nothing under nowhere/");
  });

  it("check judges a URL with a password and a random value regardless of their names", async () => {
    const reused = strong();
    await mustPut(server(), "form/DATABASE_URL", "postgres://app:s3cr3t@db.example/app");
    await mustPut(server(), "form/AWS_ACCESS_KEY_ID", reused);
    await mustPut(server(), "form/account", reused);
    await mustPut(server(), "form/url", "https://example.com/login");
    expect(await found("form")).to.deep.equal({
      "form/DATABASE_URL": "weak",
      "form/AWS_ACCESS_KEY_ID": "reused",
      "form/account": "reused",
    });
    expect(JSON.parse((await run("--json", "form")).stdout)).to.include({ checked: 4, ordinary: 1 });
    for (const name of ["DATABASE_URL", "AWS_ACCESS_KEY_ID", "account", "url"])
      mustSucceed(await send(server(), { method: "DELETE", path: `/v1/secrets/form/${name}` }));
  });

  it("check finds old passwords by names and types", async () => {
    expect(await found("app", "--old", "0")).to.deep.equal({
      "app/one": "reused,old",
      "app/two": "reused,old",
      "app/strong": "old",
      "app/weak": "weak,old",
    });
  });

  it("check finds breached passwords in a list, whole or by binary search", async () => {
    const file = join(temporaryDirectory(), "pwned.txt");
    const hashes = Array.from({ length: 3_000 }, () => sha1(strong()));
    for (const lines of [[sha1("hunter2"), ...hashes], [...hashes, `${sha1("hunter2")}:17043`].sort()]) {
      writeFileSync(file, `${lines.join("\r\n")}\r\n`);
      expect((await found("app", "--breached", file))["app/weak"]).to.equal("weak,breached");
    }
    const client = makeClient(server());
    const { key, entries } = await judgeFolder(client, "", ["breach"]);
    expect([...(await breachedIn(file, key, entries, 0))]).to.deep.equal(["app/weak"]);
    for (const lines of [[sha1("hunter2")], hashes.sort(), [...hashes, sha1(shared)].sort()]) {
      writeFileSync(file, `${lines.join("\n")}\n`);
      expect([...(await breachedIn(file, key, entries, 0))]).to.deep.equal([
        ...(await breachedIn(file, key, entries, 10 ** 9)),
      ]);
    }
    writeFileSync(file, `${sha1("hunter2").slice(0, 12)}\n`);
    expect((await found("app", "--breached", file))["app/weak"]).to.equal("weak,breached");
  });

  it("check refuses an invalid list of breached passwords", async () => {
    const file = join(temporaryDirectory(), "list.txt");
    mustRefuseWith(await run("--breached", file), 2, "cannot be read");
    writeFileSync(file, "hunter2\n");
    mustRefuseWith(await run("--breached", file), 2, "is not a list of breached passwords");
  });

  it("check finds unused secrets by the audit log, and says when the log is too short", async () => {
    mustSucceed(await send(server(), { path: "/v1/secrets/app/strong" }));
    mustRefuseWith(await run("--unused", "1d"), 4, "the audit log does not show what is unused", "it begins on");
    expect(await found("app", "--unused", "0")).to.have.property("app/strong", "unused"); // since now
    const silent = await startLocalServer({ audit: "changes" });
    await mustInit(silent);
    await mustPut(silent, "a", strong());
    mustRefuseWith(await strongroom(silent, ["check", "--unused", "1d"]), 4, "it has no reads", "--audit all");
  });

  it("check fits a terminal of 80 columns", async function () {
    needs(this, hasPython(), "Python");
    const { shown } = await runOnTerminal(["check"], { question: "never asked" }, { STRONGROOM_HOME: server().home });
    const lines = stripVTControlCharacters(shown).split(/[\r\n]+/);
    expect(lines.filter((line) => line.length > 80)).to.deep.equal([]);
    expect(lines).to.include("app/weak      very weak");
  });
});
