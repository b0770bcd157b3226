/** The credential helpers: git's judged by git; docker's by its protocol, and by docker, podman and skopeo where they are. */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createCleartextServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { expect } from "chai";
import { generate } from "selfsigned";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, type Ended, environment } from "../../tools/rig/process.js";
import { realScryptCost, shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustLock, mustPut, mustUnlock, send } from "../../tools/rig/test-client.js";

describe("credential helpers", () => {
  const server = shareLocalServer(realScryptCost, (fresh) => mustInit(fresh));

  /** The programs under the names by which git and docker look for them. */
  function installed(): string {
    const directory = temporaryDirectory();
    for (const program of ["git-credential-strongroom", "docker-credential-strongroom"])
      symlinkSync(resolve(`bin/${program}.cjs`), join(directory, program));
    return directory + delimiter + (process.env["PATH"] ?? "");
  }

  function execute(
    program: string,
    args: readonly string[],
    input: string | Uint8Array,
    more: Record<string, string> = {},
  ): Promise<Ended> {
    const settings = {
      STRONGROOM_HOME: server().home,
      STRONGROOM_ADDRESS: server().url,
      GIT_TERMINAL_PROMPT: "0",
      GIT_CONFIG_NOSYSTEM: "1",
    };
    const child = spawn(program, args, {
      env: environment({ ...settings, PATH: installed(), ...more }),
      cwd: temporaryDirectory(),
    });
    child.stdin.on("error", () => {}).end(input);
    return collect(child).ended;
  }

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

  describe("git-credential-strongroom", function () {
    this.timeout(0);

    it("stores what git approves, gives it back, and moves it to the trash when git rejects it", async () => {
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

    const helperOf = (action: string, lines: readonly string[], end = "\n") =>
      execute("git-credential-strongroom", [action], lines.map((each) => `${each}${end}`).join(""));
    const attributes: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
      ["CR LF line ends", "\r\n", [], []],
      ["password_expiry_utc", "\n", ["password_expiry_utc=1000000000"], ["password_expiry_utc=1000000000"]],
      ["oauth_refresh_token", "\n", ["oauth_refresh_token=rt"], ["oauth_refresh_token=rt"]],
      ["capability[], state[] and wwwauth[]", "\n", ["capability[]=authtype", "state[]=x", "wwwauth[]=Basic"], []],
      ["attributes after the blank line", "\n", ["", "password=other"], []],
    ];
    for (const [index, [what, end, more, want]] of attributes.entries()) {
      it(`keeps or ignores ${what}, as git's protocol says`, async () => {
        const asked = ["protocol=https", `host=attributes-${index}.test`];
        const stored = [...asked, "username=u", "password=pw", ...more];
        expect(await helperOf("store", stored, end)).to.include({ code: 0, stderr: "" });
        const { stdout } = await helperOf("get", asked, end);
        expect(stdout).to.equal(["username=u", "password=pw", ...want, ""].join("\n"));
        await helperOf("erase", asked);
        expect((await helperOf("get", asked)).stdout).to.equal("");
        expect(await mustListPaths(server(), `git/attributes-${index}.test/`)).to.deep.equal([]);
      });
    }

    it("responds at the blank line while the pipe stays open", async () => {
      const lines = ["protocol=https", "host=open.test"];
      await helperOf("store", [...lines, "username=u", "password=pw"]);
      const env = environment({ STRONGROOM_HOME: server().home, STRONGROOM_ADDRESS: server().url, PATH: installed() });
      const child = spawn("git-credential-strongroom", ["get"], { env, cwd: temporaryDirectory() });
      child.stdin.write(`${lines.join("\n")}\n\n`);
      expect((await collect(child).ended).stdout).to.equal("username=u\npassword=pw\n");
    });

    it("keeps repositories apart with credential.useHttpPath", async () => {
      const config = ["-c", "credential.useHttpPath=true"];
      const at = (path: string) => ({ protocol: "https", host: "h.test", path, username: "u" });
      for (const path of ["a/b.git", "c.git"]) await git("approve", { ...at(path), password: `of ${path}` }, ...config);
      for (const path of ["a/b.git", "c.git"])
        expect((await git("fill", at(path), ...config)).stdout).to.contain(`password=of ${path}\n`);
      expect((await git("fill", at("d.git"), ...config)).code).not.to.equal(0);
      expect((await git("fill", { protocol: "https", host: "h.test", username: "u" })).code).not.to.equal(0);
    });

    it("gives nothing in cleartext, to another host, or where it cannot tell the user", async () => {
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

    it("lets git fetch behind Basic authentication", async () => {
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

    const direct = (action: string, input: string | Uint8Array) =>
      execute("git-credential-strongroom", [action], input);

    it("gives no user or password that would add lines to its response", async () => {
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

    it("refuses what is too long instead of storing a part of it, and ignores what it does not know", async () => {
      const start = "protocol=https\nhost=long.test\nusername=me\n";
      const long = await direct("store", `${start}password=${"x".repeat(300_000)}\n`);
      expect(long).to.include({ code: 2, stdout: "" });
      expect(long.stderr).to.contain("256 KiB");
      for (const input of ["=\nhost", `${start.replace("https", "https\r")}\n`])
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

    it("says that the vault is locked, and lets git ask", async () => {
      await mustLock(server());
      const { stderr, code } = await git("fill", { protocol: "https", host: "two.test", username: "a" });
      await mustUnlock(server());
      expect(code).to.equal(128);
      expect(stderr).to.contain("vault is locked");
    });
  });

  describe("docker-credential-strongroom", function () {
    this.timeout(0);
    const docker = (action: string, input = "") => execute("docker-credential-strongroom", [action], input);
    const hub = "https://index.docker.io/v1/";

    it("stores, gives, lists and erases logins", async () => {
      const login = { ServerURL: hub, Username: "me", Secret: 'a "token"\\ of é' };
      expect(await docker("store", JSON.stringify(login))).to.include({ code: 0, stdout: "", stderr: "" });
      expect(
        await docker("store", JSON.stringify({ ServerURL: "ghcr.io", Username: "other", Secret: "x".repeat(20) })),
      ).to.include({ code: 0 });
      expect(JSON.parse((await docker("get", hub)).stdout)).to.deep.equal(login);
      expect(JSON.parse((await docker("list")).stdout)).to.deep.equal({ [hub]: "me", "ghcr.io": "other" });
      expect(await docker("store", JSON.stringify({ ...login, Username: "new" }))).to.include({ code: 0 });
      expect(JSON.parse((await docker("list")).stdout)).to.deep.equal({ [hub]: "new", "ghcr.io": "other" });
      expect(await docker("erase", `${hub}\n`)).to.include({ code: 0, stdout: "" });
      expect(await docker("get", hub)).to.include({ code: 1, stdout: "credentials not found in native keychain\n" });
      expect(JSON.parse((await docker("list")).stdout)).to.deep.equal({ "ghcr.io": "other" });
    });

    it("writes the reason of a failure to standard output, which is all that docker shows", async () => {
      const args = ["--address", "https://127.0.0.1:9", "get"];
      const failed = await execute("docker-credential-strongroom", args, "r.example\n");
      expect(failed.stdout.trim()).not.to.equal("");
      expect(failed.code).not.to.equal(0);
    });

    it("refuses invalid input without repeating it", async () => {
      for (const input of [
        "",
        "{",
        '{"Secret":"hidden-text"}',
        '{"ServerURL":"r","Username":"u","Secret":7,"x":"hidden-text"}',
        '{"ServerURL":"\\ud800","Username":"u","Secret":"hidden-text"}',
        '{"ServerURL":"r","Username":"\\ud800","Secret":"hidden-text"}',
        '{"ServerURL":"r","Username":"u","Secret":"hidden-text\\ud800"}',
        "[".repeat(200_000),
      ]) {
        const { code, stdout, stderr } = await docker("store", input);
        expect(code).to.equal(2);
        expect(stdout + stderr)
          .to.contain("ServerURL, Username and Secret")
          .and.not.contain("hidden-text");
      }
      expect(await docker("get", "")).to.include({ code: 2 });
      const long = await docker(
        "store",
        JSON.stringify({ ServerURL: "r", Username: "u", Secret: "x".repeat(300_000) }),
      );
      expect(long.code).to.equal(2);
      expect(long.stderr).to.contain("256 KiB");
      await mustPut(server(), "docker/binary.test/me", { value: "/w==", encoding: "base64" });
      const binary = await docker("get", "binary.test");
      expect(binary).to.include({ code: 2, stdout: "docker/binary.test/me is binary: docker takes a text\n" });
      expect(binary.stderr).to.contain("binary");
      expect(await docker("login")).to.include({ code: 2 });
    });
  });

  /** A registry that wants Basic authentication (the distribution specification, "Determining Support"); the logins it has seen. */
  async function startRegistry(): Promise<{ readonly host: string; readonly seen: string[] }> {
    const seen: string[] = [];
    const registry = createCleartextServer((req, res) => {
      const [, credential = ""] = /^Basic (.*)$/.exec(req.headers.authorization ?? "") ?? [];
      if (credential !== "") seen.push(Buffer.from(credential, "base64").toString());
      const isKnown = seen.at(-1) === "me:token-of-me" && credential !== "";
      res.setHeader("Docker-Distribution-Api-Version", "registry/2.0");
      res.writeHead(isKnown ? 200 : 401, isKnown ? {} : { "WWW-Authenticate": 'Basic realm="r"' }).end("{}");
    });
    await new Promise<void>((done) => registry.listen(0, "127.0.0.1", done));
    later(() => void registry.close());
    return { host: `127.0.0.1:${(registry.address() as AddressInfo).port}`, seen };
  }

  describe("docker-credential-strongroom, called by", function () {
    this.timeout(0);

    /** `usable`: ends without an error where the program can work, which an installed podman cannot always. `again`: what a second login says that the helper's credential was used. */
    type Tool = {
      readonly program: string;
      readonly usable: readonly string[];
      readonly flags: readonly string[];
      readonly again: string;
    };
    const tools: readonly Tool[] = [
      { program: "docker", usable: ["--version"], flags: [], again: "existing credentials... [Username: me]" }, // and then asks a daemon
      { program: "podman", usable: ["info"], flags: ["--tls-verify=false"], again: "Existing credentials are valid" },
      {
        program: "skopeo",
        usable: ["--version"],
        flags: ["--tls-verify=false"],
        again: "Existing credentials are valid",
      },
    ];
    for (const { program, usable, flags, again } of tools) {
      it(`${program} login and logout`, async function () {
        needs(this, spawnSync(program, usable).status === 0, `a usable ${program}`);
        const { host, seen } = await startRegistry();
        const config = temporaryDirectory();
        const file = join(config, "config.json");
        writeFileSync(file, JSON.stringify({ credHelpers: { [host]: "strongroom" } }));
        // No daemon: docker then asks the registry itself.
        const env = { DOCKER_CONFIG: config, DOCKER_HOST: `unix://${config}/none`, REGISTRY_AUTH_FILE: file };
        const made = await execute(
          program,
          ["login", ...flags, "-u", "me", "--password-stdin", host],
          "token-of-me\n",
          env,
        );
        expect(made.code, made.stderr).to.equal(0);
        expect(seen).to.include("me:token-of-me");
        expect(readFileSync(file, "utf8")).not.to.contain(Buffer.from("me:token-of-me").toString("base64"));
        expect(await mustGet(server(), `docker/${host}/me`)).to.include({ value: "token-of-me" });
        const { stdout, stderr } = await execute(program, ["login", ...flags, host], "", env);
        expect(stdout + stderr).to.contain(again);
        const ended = await execute(program, ["logout", host], "", env);
        expect(ended.code, ended.stderr).to.equal(0);
        const { status } = await send(server(), { path: `/v1/secrets/docker/${host}/me` });
        expect(status).to.equal(404);
        return undefined;
      });
    }
  });
});
