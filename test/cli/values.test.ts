/** Values that are more than a line, as commands store, print and pass them: binary ones, fields of JSON, times of expiry. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { passphrase, realScryptCost, shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import type { Finished } from "../support/command-here.js";
import { mustDo, strongroom } from "./run-command.js";

const day = 86_400_000;

function mustFail({ code, stdout, stderr }: Finished, exit: number, text: RegExp): void {
  expect(stderr, stdout).to.match(text);
  expect(code).to.equal(exit);
}

/** With every byte, and a newline at its end, which a text would lose. */
const binary = Buffer.from([...Array.from({ length: 256 }, (_, i) => i), 0x0a]);

describe("binary values, through the real command", () => {
  const server = shareLocalServer(realScryptCost, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/cert", { value: binary.toString("base64"), encoding: "base64" });
    await mustPut(started, "app/text", { value: "text" });
  });
  const run = (...args: readonly string[]) => strongroom(server(), args);

  it("put reads a file byte for byte, and get -o writes it", async () => {
    const directory = temporaryDirectory();
    for (const [name, content, flags] of [
      ["every byte", binary, []],
      ["random", randomBytes(50_000), []],
      ["a text, kept whole", Buffer.from("text\n"), ["--binary"]],
    ] as const) {
      const [file, copy] = [join(directory, name), join(directory, `${name} copied`)];
      writeFileSync(file, content);
      mustDo(await run("put", `files/${name}`, "--from-file", file, ...flags));
      const { stdout } = mustDo(await run("get", `files/${name}`, "-o", copy));
      expect(stdout).to.equal(`files/${name} written to ${copy} (${content.length} bytes)\n`);
      expect(readFileSync(copy).equals(content), name).to.equal(true);
      expect(statSync(copy).mode & 0o777).to.equal(0o600);
    }
  });

  it("get -o refuses links, pipes and devices, and leaves them as they are", async () => {
    const directory = temporaryDirectory();
    const at = (name: string) => join(directory, name);
    execFileSync("mkfifo", [at("pipe")]);
    writeFileSync(at("file"), "kept");
    for (const [name, target] of [
      ["link", "file"],
      ["chain", "link"],
      ["dangling", "missing"],
      ["to-directory", "."],
      ["to-pipe", "pipe"],
    ] as const)
      symlinkSync(target, at(name));
    const names = ["link", "chain", "dangling", "to-directory", "to-pipe", "pipe"];
    const kinds = () => [...names, "file"].map((name) => [name, lstatSync(at(name)).mode]);
    const before = kinds();
    for (const output of [...names.map(at), "/dev/stdout", "/dev/null"]) {
      for (const flags of output.startsWith("/dev/") ? [[]] : [[], ["--overwrite"]]) {
        const refused = await run("get", "app/text", "-o", output, ...flags);
        mustFail(refused, 2, /is a symbolic link|is not a regular file/);
        expect(refused.stdout).to.equal("");
        expect(refused.stderr).not.to.contain("--overwrite");
      }
    }
    expect(kinds()).to.deep.equal(before);
    expect(readFileSync(at("file"), "utf8")).to.equal("kept");
    mustFail(await run("get", "app/text", "-o", at("to-directory/file")), 7, /--overwrite/);
  });

  it("get writes the bytes of a binary value to a pipe, and base64 in JSON", async () => {
    expect(mustDo(await run("get", "app/cert")).bytes.equals(binary)).to.equal(true);
    const { stdout } = mustDo(await run("get", "app/cert", "--json"));
    expect(JSON.parse(stdout)).to.include({ encoding: "base64", value: binary.toString("base64") });
  });

  it("put reads a binary value from standard input", async () => {
    mustDo(await strongroom(server(), ["put", "piped", "-"], { input: binary }));
    expect(mustDo(await run("get", "piped")).bytes.equals(binary)).to.equal(true);
  });

  for (const args of [
    ["run", "--prefix", "app", "--", "true"],
    ["run", "--set", "X=app/cert", "--", "true"],
    ["export", "--format", "dotenv", "--plaintext", "--prefix", "app"],
    ["export", "--format", "shell", "--plaintext", "--prefix", "app"],
    ["get", "app/text", "app/cert"],
    ["edit", "app/cert"],
  ]) {
    it(`a binary value is refused by name: ${args.join(" ")}`, async () => {
      mustFail(await run(...args), 2, /app\/cert is a binary value: write it to a file with {2}strongroom get/);
    });
  }

  it("inject refuses a binary value, and writes nothing", async () => {
    const output = join(temporaryDirectory(), "out");
    const input = "{{ strongroom://app/cert }}";
    mustFail(await strongroom(server(), ["inject", "-o", output], { input }), 2, /app\/cert is a binary value/);
    expect(existsSync(output)).to.equal(false);
  });

  it("a binary value survives cp over another secret, and export and import as JSON, with its time of expiry", async () => {
    const file = join(temporaryDirectory(), "export.json");
    mustDo(await run("cp", "app/cert", "copied/cert"));
    mustDo(await run("describe", "copied/cert", "--expires", "2030-01-31"));
    mustDo(await run("cp", "copied/cert", "piped", "--replace"));
    mustDo(await run("export", "--format", "json", "--plaintext", "--prefix", "copied", "-o", file));
    const other = await startLocalServer();
    await mustInit(other);
    mustDo(await strongroom(other, ["import", "--format", "json", file]));
    const secret = mustSucceed(await send(other, { path: "/v1/secrets/copied/cert" }));
    expect(secret).to.include({ value: binary.toString("base64"), encoding: "base64" });
    expect(secret["metadata"]).to.deep.equal({ expiresAt: "2030-01-31T00:00:00.000Z" });
    const { stdout } = mustDo(await strongroom(other, ["import", "--format", "json", file, "--json"]));
    expect(JSON.parse(stdout)).to.include({ unchanged: 1, created: 0 });
  });

  it("a binary value survives a backup and a restore", async () => {
    const directory = temporaryDirectory();
    const archive = join(directory, "vault.tar");
    mustDo(await run("backup", archive));
    const home = join(directory, "restored");
    mkdirSync(home, { mode: 0o700 });
    expect((await strongroom({ home }, ["restore", archive, "--home", home])).code).to.equal(0);
    const restored = await startLocalServer({ home });
    mustSucceed(await send(restored, { method: "POST", path: "/v1/unlock", body: { passphrase } }));
    expect(mustDo(await strongroom(restored, ["get", "app/cert"])).bytes.equals(binary)).to.equal(true);
  });
});

describe("fields of a JSON value, through the real command", () => {
  const value =
    '{"user":{"name":"me","id":12345678901234567890},"a.b":"dotted","hosts":["one","two"],"on":true,"none":null}';
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/db", { value });
    await mustPut(started, "app/plain", { value: "plain" });
    await mustPut(started, "app/a#b", { value: "hash" });
  });
  const run = (...args: readonly string[]) => strongroom(server(), args);

  const fields: Readonly<Record<string, string>> = {
    "user.name": "me",
    "user.id": "12345678901234567890",
    "a.b": "dotted",
    "hosts.1": "two",
    hosts: '["one","two"]',
    user: '{"name":"me","id":12345678901234567890}',
    on: "true",
    none: "null",
  };
  for (const [field, text] of Object.entries(fields)) {
    it(`get --field ${field} prints the field`, async () => {
      expect(mustDo(await run("get", "app/db", "--field", field)).stdout).to.equal(text);
    });
  }

  for (const [field, problem] of [
    ["user.nam", /app\/db has no field user\.nam\. Did you mean user\.name\?/],
    ["user.password", /app\/db has no field user\.password: it has user\.name, user\.id/],
    ["usr", /app\/db has no field usr\. Did you mean user\?/],
    ["toString", /app\/db has no field toString/],
    ["hosts.2", /app\/db has no field hosts\.2/],
  ] as const) {
    it(`get --field ${field} names the missing field: exit 4`, async () => {
      mustFail(await run("get", "app/db", "--field", field), 4, problem);
    });
  }

  it("a field is found in a value with four million escapes", async () => {
    const large = await startLocalServer({ maxValueBytes: 16 * 2 ** 20 });
    await mustInit(large);
    await mustPut(large, "app/large", { value: `{"log":"${"\\n".repeat(4e6)}","level":"debug"}` });
    expect(mustDo(await strongroom(large, ["get", "app/large", "--field", "level"])).stdout).to.equal("debug");
  });

  it("a value that is no JSON object has no fields", async () => {
    mustFail(await run("get", "app/plain", "--field", "a"), 4, /app\/plain has no field a: its value is not a JSON/);
  });

  it("run takes fields from --set, an env file and the project file", async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, "env"), "A=strongroom://app/db#user.name\nB='{{ strongroom://app/db#hosts.0 }}!'\n", {
      mode: 0o600,
    });
    writeFileSync(join(cwd, ".strongroom.toml"), '[set]\nC = "strongroom://app/db#on"\n', { mode: 0o600 });
    const print = ["--", "sh", "-c", 'printf %s "$A,$B,$C,$D"'];
    const flags = ["-e", "env", "--set", "D=strongroom://app/a%23b"];
    expect(mustDo(await strongroom(server(), ["run", ...flags, ...print], { cwd })).stdout).to.equal("me,one!,,hash");
    const xdg = { environment: { XDG_STATE_HOME: join(cwd, "state") }, cwd };
    expect((await strongroom(server(), ["allow"], xdg)).code).to.equal(0);
    expect(mustDo(await strongroom(server(), ["run", ...print], xdg)).stdout).to.equal(",,true,");
  });

  it("inject fills fields in, and refuses a missing one: exit 4", async () => {
    const fill = (input: string) => strongroom(server(), ["inject"], { input });
    expect(mustDo(await fill("<{{ strongroom://app/db#user.name }}>")).stdout).to.equal("<me>");
    mustFail(await fill("{{ strongroom://app/db#user.mail }}"), 4, /app\/db has no field user\.mail/);
    mustFail(await fill("{{ strongroom://app/db# }}"), 2, /the field after # must be a name/);
  });
});

describe("times of expiry, through the real command", () => {
  const server = shareLocalServer(realScryptCost, async (started) => {
    await mustInit(started);
    const at = (days: number) => new Date(Date.now() + days * day).toISOString();
    await mustPut(started, "soon/a", { value: "v", expiresAt: at(10) });
    await mustPut(started, "soon/over", { value: "v", expiresAt: at(-1) });
    await mustPut(started, "soon/later", { value: "v", expiresAt: at(40) });
    await mustPut(started, "soon/never", { value: "v" });
  });
  const run = (...args: readonly string[]) => strongroom(server(), args);
  const readMetadata = async (path: string) =>
    mustSucceed(await send(server(), { path: `/v1/secrets/${path}` }))["metadata"] as { readonly expiresAt?: string };

  it("doctor --open counts what has expired or will, which is no finding", async () => {
    const line = "1 expired, 1 within 30 days: strongroom ls --expiring 30d\n";
    const doctor = (...flags: readonly string[]) =>
      strongroom(server(), ["doctor", "--passphrase-fd", "0", ...flags], { input: passphrase });
    expect(mustDo(await doctor()).stdout).to.contain(`expiring: ${line}`);
    const { expiry, findings } = JSON.parse(mustDo(await doctor("--json")).stdout) as Record<string, unknown>;
    expect({ expiry, findings }).to.deep.equal({ expiry: { expired: 1, within30Days: 1 }, findings: [] });
  });

  it("ls --expiring lists what has expired, and what expires in time", async () => {
    expect(mustDo(await run("ls", "--expiring", "30d")).stdout).to.equal("soon/a\nsoon/over\n");
    expect(mustDo(await run("ls", "soon", "--expiring", "0")).stdout).to.equal("soon/over\n");
    expect(mustDo(await run("ls", "--long", "--expiring", "30d")).stdout).to.match(
      /soon\/a .*expires 20\d\d-\d\d-\d\d\n/,
    );
  });

  it("put --expires takes a duration, a date and never, and a put keeps it", async () => {
    const put = (...flags: string[]) => strongroom(server(), ["put", "put", "-", ...flags], { input: "v" });
    mustDo(await put("--expires", "90d"));
    const left = Date.parse((await readMetadata("put")).expiresAt ?? "") - Date.now();
    expect(left).to.be.within(89 * day, 90 * day);
    mustDo(await put("--expires", "2030-01-31"));
    mustDo(await strongroom(server(), ["put", "put", "-"], { input: "w" }));
    expect(await readMetadata("put")).to.deep.equal({ expiresAt: "2030-01-31T00:00:00.000Z" });
    mustDo(await put("--expires", "never"));
    expect(await readMetadata("put")).to.deep.equal({});
    mustFail(
      await put("--expires", "soon"),
      2,
      /--expires must be a duration such as 90d, a date such as 2027-01-31, or never/,
    );
  });

  it("describe changes only the metadata, and shows it", async () => {
    await mustPut(server(), "described", { value: "v", type: "password" });
    mustDo(await run("describe", "described", "--description", "for tests", "--expires", "2030-01-31"));
    expect(await readMetadata("described")).to.deep.equal({
      type: "password",
      description: "for tests",
      expiresAt: "2030-01-31T00:00:00.000Z",
    });
    expect(mustDo(await run("describe", "described")).stdout).to.match(
      /type {9}password\n.*for tests\n.*expires {6}2030-01-3/s,
    );
    mustDo(await run("describe", "described", "--type", "none", "--description", "", "--expires", "never"));
    expect(await readMetadata("described")).to.deep.equal({});
    await mustPut(server(), "described", { value: "v", custom: { owner: "ci" } });
    const { stdout } = mustDo(await run("describe", "described"));
    expect(stdout).to.contain("  custom       owner: ci\n");
    expect(mustDo(await run("ls", "--long", "described")).stdout).not.to.contain("owner");
    mustFail(await run("describe", "descibed", "--type", "none"), 4, /Did you mean described\?/);
  });
});
