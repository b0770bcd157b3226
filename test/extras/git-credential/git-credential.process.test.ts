/** The credential helper of git, judged by git. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { generate } from "selfsigned";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { collect, type Ended } from "../../../tools/rig/process.js";
import { realScryptCost, shareLocalServer } from "../../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustListPaths,
  mustLock,
  mustPut,
  mustUnlock,
  send,
} from "../../../tools/rig/test-client.js";
import { strongroom } from "../../cli/run-command.js";
import { helperEnvironment, helperRunner } from "../helper-programs.js";

describe("git-credential-strongroom", function () {
  this.timeout(0);
  const server = shareLocalServer(realScryptCost, (fresh) => mustInit(fresh));
  const execute = helperRunner(server, { GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1" });

  const helper = ["-c", "credential.helper=", "-c", "credential.helper=strongroom"];

  function git(
    action: "fill" | "approve" | "reject",
    lines: Readonly<Record<string, string>>,
    ...config: readonly string[]
  ): Promise<Ended> {
    const input = Object.entries(lines)
      .map(([name, value]) => `${name}=${value}\n`)
      .join("");
    return execute("git", [...helper, ...config, "credential", action], `${input}\n`);
  }

  const known = {
    protocol: "https",
    host: "git.test:8443",
    username: "me@example.com",
    password: "pass=word with spaces: é",
  };

  it("a login that git approves is stored and returned, and moves to the trash when git rejects it", async () => {
    expect(await git("approve", known)).to.include({ code: 0, stderr: "" });
    const secret = await mustGet(server(), "git/git.test:8443/me@example.com");
    expect(secret).to.include({ value: known.password, version: 1 });
    expect(await git("approve", known)).to.include({ code: 0 });
    expect(await mustGet(server(), "git/git.test:8443/me@example.com")).to.include({ version: 1 });
    const { password: _, ...asked } = known;
    for (const lines of [asked, { protocol: "https", host: known.host }]) {
      const { stdout } = await git("fill", lines);
      expect(stdout).to.contain(`username=${known.username}\n`).and.contain(`password=${known.password}\n`);
    }
    await git("reject", { ...known, password: "another" });
    expect(await mustGet(server(), "git/git.test:8443/me@example.com")).to.include({ value: known.password });
    await git("reject", known);
    expect((await send(server(), { path: "/v1/secrets/git/git.test:8443/me@example.com" })).status).to.equal(404);
    expect((await git("fill", asked)).code).not.to.equal(0);
  });

  const direct = (action: string, input: string | Uint8Array) =>
    strongroom(server(), ["git-credential", action], { input });
  const runHelper = (action: string, lines: readonly string[], end = "\n") =>
    direct(action, lines.map((each) => `${each}${end}`).join(""));
  const attributes: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
    ["CR LF line ends", "\r\n", [], []],
    ["password_expiry_utc", "\n", ["password_expiry_utc=1000000000"], ["password_expiry_utc=1000000000"]],
    ["oauth_refresh_token", "\n", ["oauth_refresh_token=rt"], ["oauth_refresh_token=rt"]],
    ["capability[], state[] and wwwauth[]", "\n", ["capability[]=authtype", "state[]=x", "wwwauth[]=Basic"], []],
    ["continue, quit, an empty array and an unknown name", "\n", ["continue=1", "quit=1", "wwwauth[]=", "x-new=1"], []],
    ["ephemeral=0", "\n", ["ephemeral=0"], []],
    ["a name that is there twice, whose last value counts", "\n", ["username=other", "username=u"], []],
    ["an expiry that is no time", "\n", ["password_expiry_utc=soon"], []],
    ["attributes after the blank line", "\n", ["", "password=other"], []],
    ["an expiry of 0, which is none", "\n", ["password_expiry_utc=0"], []],
    ["url, which git resolves itself", "\n", ["url=https://other:pw@evil.test/x"], []],
    ["authtype without a credential", "\n", ["capability[]=authtype", "authtype=basic"], []],
    ["an empty oauth_refresh_token", "\n", ["oauth_refresh_token="], []],
    ["ephemeral=no", "\n", ["ephemeral=no"], []],
    ["an empty name", "\n", ["=x"], []],
  ];
  for (const [index, [what, end, more, want]] of attributes.entries()) {
    it(`the helper keeps or ignores ${what}, as git's protocol says`, async () => {
      const asked = ["protocol=https", `host=attributes-${index}.test`];
      const stored = [...asked, "username=u", "password=pw", ...more];
      expect(await runHelper("store", stored, end)).to.include({ code: 0, stderr: "" });
      const { stdout } = await runHelper("get", asked, end);
      expect(stdout).to.equal(["username=u", "password=pw", ...want, ""].join("\n"));
      await runHelper("erase", asked);
      expect((await runHelper("get", asked)).stdout).to.equal("");
      expect(await mustListPaths(server(), `git/attributes-${index}.test/`)).to.deep.equal([]);
    });
  }

  for (const more of [
    ["ephemeral=1"],
    ["ephemeral=2"],
    ["ephemeral=ON"],
    ["ephemeral=true"],
    ["protocol=http"],
    ["host="],
    ["username="],
    ["password=", "authtype=Bearer", "credential=abc"],
  ]) {
    it(`the helper stores nothing with ${more.join(" and ")}`, async () => {
      const asked = ["protocol=https", "host=nothing.test"];
      expect(await runHelper("store", [...asked, "username=u", "password=pw", ...more])).to.include({
        code: 0,
        stderr: "",
      });
      expect((await runHelper("get", asked)).stdout).to.equal("");
    });
  }

  const refused: readonly (readonly [string, string | Buffer, string])[] = [
    ["a line without =, at which a value was cut", "username=u\npassword=p\nq\n", "line 5 has no ="],
    ["a password with NUL", "username=u\npassword=p\0q\n", "NUL"],
    ["a line of more than 65,535 bytes", `username=u\npassword=${"x".repeat(65_527)}\n`, "65,535 bytes"],
    ["a user that is not UTF-8", Buffer.from("username=caf\xe9\npassword=p\n", "latin1"), "username is not UTF-8"],
    ["a path that is not UTF-8", Buffer.from("path=\xe9\nusername=u\npassword=p\n", "latin1"), "path is not UTF-8"],
  ];
  for (const [what, lines, says] of refused) {
    it(`the helper refuses to store ${what}`, async () => {
      const start = Buffer.from("protocol=https\nhost=refused.test\n");
      const { code, stderr } = await direct("store", Buffer.concat([start, Buffer.from(lines)]));
      expect({ code, stderr }).to.include({ code: 2 });
      expect(stderr).to.contain(says);
      expect(await mustListPaths(server(), "git/refused.test/")).to.deep.equal([]);
    });
  }

  it("the longest line of git's protocol is stored, and no longer one is returned", async () => {
    const asked = ["protocol=https", "host=length.test"];
    const password = "x".repeat(65_535 - "password=\n".length);
    expect(await runHelper("store", [...asked, "username=u", `password=${password}`])).to.include({ code: 0 });
    expect((await runHelper("get", asked)).stdout).to.equal(`username=u\npassword=${password}\n`);
    await mustPut(server(), "git/length.test/u", `${password}x`);
    const { code, stdout, stderr } = await runHelper("get", asked);
    expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
    expect(stderr).to.contain("65,535 bytes");
  });

  it("operations of later versions of git are ignored", async () => {
    for (const action of ["capability", "list"])
      expect(await direct(action, "version 0\n")).to.include({ code: 0, stdout: "", stderr: "" });
  });

  it("the helper responds at the blank line while the pipe stays open", async () => {
    const lines = ["protocol=https", "host=open.test"];
    await runHelper("store", [...lines, "username=u", "password=pw"]);
    const child = spawn("git-credential-strongroom", ["get"], {
      env: helperEnvironment(server()),
      cwd: temporaryDirectory(),
    });
    child.stdin.write(`${lines.join("\n")}\n\n`);
    expect((await collect(child).ended).stdout).to.equal("username=u\npassword=pw\n");
  });

  it("credential.useHttpPath separates repositories", async () => {
    const config = ["-c", "credential.useHttpPath=true"];
    const at = (path: string) => ({ protocol: "https", host: "h.test", path, username: "u" });
    for (const path of ["a/b.git", "c.git"]) await git("approve", { ...at(path), password: `of ${path}` }, ...config);
    for (const path of ["a/b.git", "c.git"])
      expect((await git("fill", at(path), ...config)).stdout).to.contain(`password=of ${path}\n`);
    expect((await git("fill", at("d.git"), ...config)).code).not.to.equal(0);
    expect((await git("fill", { protocol: "https", host: "h.test", username: "u" })).code).not.to.equal(0);
  });

  it("cleartext, another host and an unclear user get no login", async () => {
    await mustPut(server(), "git/two.test/a", "1");
    await mustPut(server(), "git/two.test/b", "2");
    for (const lines of [
      { protocol: "http", host: "two.test", username: "a" },
      { protocol: "https", host: "two.test.evil", username: "a" },
      { protocol: "https", host: "wo.test", username: "a" },
      { protocol: "https", host: "..", username: "a" },
      { protocol: "https", host: "two.test", username: "../two.test/a" },
      { protocol: "https", host: "two.test" },
    ]) {
      const { code, stdout } = await git("fill", lines);
      expect({ code, stdout }, JSON.stringify(lines)).to.deep.equal({ code: 128, stdout: "" });
    }
  });

  it("git fetches with Basic authentication from the vault", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
      keyType: "ec",
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    const seen: (string | undefined)[] = [];
    const remote = createServer({ cert, key }, (req, res) => {
      seen.push(req.headers.authorization);
      res.writeHead(req.headers.authorization === undefined ? 401 : 404, { "WWW-Authenticate": "Basic" }).end();
    });
    await new Promise<void>((done) => remote.listen(0, "127.0.0.1", done));
    later(() => void remote.close());
    const { port } = remote.address() as AddressInfo;
    const root = join(temporaryDirectory(), "root.pem");
    writeFileSync(root, cert);
    await mustPut(server(), `git/localhost:${port}/alice`, "token-of-alice");
    await execute("git", [...helper, "ls-remote", `https://localhost:${port}/r.git`], "", { GIT_SSL_CAINFO: root });
    expect(seen).to.deep.equal([undefined, `Basic ${Buffer.from("alice:token-of-alice").toString("base64")}`]);
  });

  it("a user or password that would add lines to the response is not returned", async () => {
    const odd: readonly (readonly [string, string, string])[] = [
      ["lines.test", "me%0Ahost%3Devil.test", "p"],
      ["returns.test", "me%0Dhost%3Devil.test", "p"],
      ["nul.test", "me%00", "p"],
      ["value.test", "me", "p\nhost=evil.test"],
      ["cut.test", "me", "p\0q"],
    ];
    for (const [host, user, password] of odd) {
      await mustPut(server(), `git/${host}/${user}`, password);
      const { code, stdout, stderr } = await direct("get", `protocol=https\nhost=${host}\n\n`);
      expect({ code, stdout }, host).to.deep.equal({ code: 2, stdout: "" });
      expect(stderr).to.contain("git takes one line").and.not.contain("\0").and.not.contain("\r");
      await send(server(), { method: "DELETE", path: `/v1/secrets/git/${host}/${encodeURIComponent(user)}` });
    }
  });

  it("input that is too long is refused instead of stored in part, and unknown fields are ignored", async () => {
    const start = "protocol=https\nhost=long.test\nusername=me\n";
    const long = await direct("store", `${start}password=${"x".repeat(600_000)}\n`);
    expect(long).to.include({ code: 2, stdout: "" });
    expect(long.stderr).to.contain("512 KiB");
    for (const input of ["=\nhost=", `${start.replace("https", "https\r")}\n`])
      expect(await direct("get", input), JSON.stringify(input)).to.include({ code: 0, stdout: "", stderr: "" });
    const invalid = Buffer.concat([Buffer.from("protocol=https\nhost="), Buffer.of(0xff, 0x00, 0x0a)]);
    expect((await direct("get", invalid)).stdout).to.equal("");
    const unknown = `capability[]=authtype\nurl=https://evil.test\nwwwauth[]=x\n${start}password=p\n`;
    expect(await direct("store", unknown)).to.include({ code: 0, stderr: "" });
    expect((await direct("get", "protocol=https\nhost=evil.test\n")).stdout).to.equal("");
    expect((await direct("get", start)).stdout).to.equal("username=me\npassword=p\n");
    for (const path of ["../long.test", "a".repeat(2000)])
      expect((await direct("get", `${start}path=${path}\n`)).stdout, path).to.equal("");
  });

  it("the helper reports a locked vault, and git asks the user", async () => {
    await mustLock(server());
    const { stderr, code } = await git("fill", { protocol: "https", host: "two.test", username: "a" });
    await mustUnlock(server());
    expect(code).to.equal(128);
    expect(stderr).to.contain("vault is locked");
  });
});
