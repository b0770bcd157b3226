/** The credential helper of docker: judged by its protocol, and by docker, podman and skopeo where they are. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createCleartextServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { environment } from "../../../tools/rig/process.js";
import { realScryptCost, shareLocalServer } from "../../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, send } from "../../../tools/rig/test-client.js";
import { strongroom } from "../../cli/run-command.js";
import { helperRunner } from "../helper-programs.js";

describe("docker-credential-strongroom", function () {
  this.timeout(0);
  const server = shareLocalServer(realScryptCost, (fresh) => mustInit(fresh));
  const execute = helperRunner(server);

  const docker = (action: string, input: string | Uint8Array = "") =>
    execute("docker-credential-strongroom", [action], input);
  /** Runs the command itself, in the tests' process. */
  const here = (action: string, input: string | Uint8Array = "") =>
    strongroom(server(), ["docker-credential", action], { input });
  const hub = "https://index.docker.io/v1/";

  it("the helper stores, gives, lists and erases logins", async () => {
    const login = { ServerURL: hub, Username: "me", Secret: 'a "token"\\ of é' };
    expect(await docker("store", JSON.stringify(login))).to.include({ code: 0, stdout: "", stderr: "" });
    expect(
      await here("store", JSON.stringify({ ServerURL: "ghcr.io", Username: "other", Secret: "x".repeat(20) })),
    ).to.include({ code: 0 });
    expect(JSON.parse((await docker("get", hub)).stdout)).to.deep.equal(login);
    expect(JSON.parse((await docker("list")).stdout)).to.deep.equal({ [hub]: "me", "ghcr.io": "other" });
    expect(await here("store", JSON.stringify({ ...login, Username: "new" }))).to.include({ code: 0 });
    expect(JSON.parse((await here("list")).stdout)).to.deep.equal({ [hub]: "new", "ghcr.io": "other" });
    expect(await here("erase", `${hub}\n`)).to.include({ code: 0, stdout: "" });
    expect(await here("get", hub)).to.include({ code: 1, stdout: "credentials not found in native keychain\n" });
    expect(JSON.parse((await here("list")).stdout)).to.deep.equal({ "ghcr.io": "other" });
  });

  it("the helper writes the reason of a failure to standard output, the only text that docker shows", async () => {
    const args = ["--address", "https://127.0.0.1:9", "get"];
    const failed = await execute("docker-credential-strongroom", args, "r.example\n");
    expect(failed.stdout.trim()).not.to.equal("");
    expect(failed.code).not.to.equal(0);
  });

  const login = { ServerURL: "table.test", Username: "u", Secret: "hidden-text" };
  const attributes: readonly (readonly [what: string, input: string | Buffer, exit: number, says: string])[] = [
    ["members that docker does not name", JSON.stringify({ ...login, Account: "x", nested: { a: 1 } }), 0, ""],
    ["a token instead of a user", JSON.stringify({ ...login, Username: "<token>" }), 0, ""],
    ["JSON over several lines", JSON.stringify(login, null, 2).replaceAll("\n", "\r\n"), 0, ""],
    ["a name that is there twice, whose last value counts", `{"Username":"v",${JSON.stringify(login).slice(1)}`, 0, ""],
    ["no ServerURL", JSON.stringify({ Username: "u", Secret: "hidden-text" }), 2, "no credentials server URL\n"],
    ["an empty ServerURL", JSON.stringify({ ...login, ServerURL: "" }), 2, "no credentials server URL\n"],
    ["no Username", JSON.stringify({ ServerURL: "table.test", Secret: "hidden-text" }), 2, "no credentials username\n"],
    ["an empty Username", JSON.stringify({ ...login, Username: "" }), 2, "no credentials username\n"],
    ["an empty Secret", JSON.stringify({ ...login, Secret: "" }), 2, "ServerURL, Username and Secret\n"],
    ["names in lower case", JSON.stringify(login).toLowerCase(), 2, "no credentials server URL\n"],
    [
      "bytes that are not UTF-8",
      Buffer.from(JSON.stringify({ ...login, Secret: "caf\xe9" }), "latin1"),
      2,
      "not UTF-8\n",
    ],
  ];
  for (const [what, input, exit, says] of attributes) {
    it(`${exit === 0 ? "stores a login with" : "refuses to store"} ${what}`, async () => {
      const { code, stdout, stderr } = await here("store", input);
      expect(code, stderr).to.equal(exit);
      expect(stdout)
        .to.satisfy((text: string) => text.endsWith(says))
        .and.not.contain("hidden-text");
      const user = what.startsWith("a token") ? "<token>" : "u";
      const given = await here("get", " table.test\r\n");
      if (exit === 0) expect(JSON.parse(given.stdout)).to.deep.equal({ ...login, Username: user });
      else expect(given.stdout).to.equal("credentials not found in native keychain\n");
      await here("erase", "table.test");
    });
  }

  it("the helper reports a missing registry in docker's words, and unknown actions", async () => {
    for (const action of ["get", "erase"])
      expect(await here(action, " \n")).to.include({ code: 2, stdout: "no credentials server URL\n" });
    expect(await here("erase", "unknown.test")).to.include({ code: 0, stdout: "" });
    expect(await here("version")).to.include({ code: 2 });
  });

  it("a registry with several users gets no guessed login", async () => {
    for (const user of ["a", "b"]) await mustPut(server(), `docker/several.test/${user}`, user);
    const { code, stdout } = await here("get", "several.test");
    expect(code).to.equal(7);
    expect(stdout).to.contain("several users have a password in docker/several.test/");
    await here("erase", "several.test");
  });

  it("invalid input is refused and not repeated", async () => {
    for (const input of [
      "",
      "{",
      '{"ServerURL":"r","Username":"u","Secret":7,"x":"hidden-text"}',
      '{"ServerURL":"\\ud800","Username":"u","Secret":"hidden-text"}',
      '{"ServerURL":"r","Username":"\\ud800","Secret":"hidden-text"}',
      '{"ServerURL":"r","Username":"u","Secret":"hidden-text\\ud800"}',
      "[".repeat(200_000),
    ]) {
      const { code, stdout, stderr } = await here("store", input);
      expect(code).to.equal(2);
      expect(stdout + stderr)
        .to.contain("ServerURL, Username and Secret")
        .and.not.contain("hidden-text");
    }
    expect(await here("get", "")).to.include({ code: 2 });
    const long = await here("store", JSON.stringify({ ServerURL: "r", Username: "u", Secret: "x".repeat(600_000) }));
    expect(long.code).to.equal(2);
    expect(long.stderr).to.contain("512 KiB");
    await mustPut(server(), "docker/binary.test/me", { value: "/w==", encoding: "base64" });
    const binary = await here("get", "binary.test");
    expect(binary).to.include({ code: 2, stdout: "docker/binary.test/me is binary: docker takes a text\n" });
    expect(binary.stderr).to.contain("binary");
    expect(await here("login")).to.include({ code: 2 });
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

  describe("container tools", () => {
    type Tool = {
      readonly program: string;
      /** Ends without an error where the program can work, which an installed podman cannot always. */
      readonly usable: readonly string[];
      readonly flags: readonly string[];
      /** Text of a second login that used the helper's credential. */
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
      it(`${program} login and logout call the helper`, async function () {
        needs(this, spawnSync(program, usable, { env: environment({}) }).status === 0, `a usable ${program}`);
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
      });
    }
  });
});
