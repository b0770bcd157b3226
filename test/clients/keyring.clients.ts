/**
 * Programs and libraries that keep secrets in the Secret Service, unchanged, with the keyring. Found below VAULT_CLIENTS or on
 * PATH: `bin` and `lib`, `python` with secretstorage, keyring and jeepney, `node_modules`, and checkouts of `secretstorage` and
 * `go-keyring`. Skipped where missing.
 */
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { messageLength, readMessage, writeMessage } from "../../src/cli/kit/dbus/wire.js";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { run } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustLock, mustUnlock } from "../../tools/rig/test-client.js";
import { directory, has, mustRun, path, python, run as runProgram } from "./programs.js";

const hasPython = (module: string) => existsSync(python) && has(python, "-c", `import ${module}`);
const codex = join(directory, "node_modules", ".bin", "codex");
const napi = join(directory, "node_modules", "@napi-rs", "keyring");
const suites = { secretStorage: join(directory, "secretstorage"), goKeyring: join(directory, "go-keyring") };

/** A program, as shell scripts: `store` keeps $VALUE, `lookup` prints what contains the value, or fails or prints none. */
type Judge = {
  readonly name: string;
  readonly isThere: boolean;
  readonly store: string;
  readonly lookup: string;
  readonly clear: string;
  /** Makes the program in a directory, which is $PROGRAM. */
  readonly build?: (place: string) => Promise<unknown>;
};

const inPython = (code: string) => `${python} -c '
import os, secretstorage
collection = secretstorage.get_default_collection(secretstorage.dbus_init())
about = {"judge": "secretstorage"}
if collection.is_locked() and collection.unlock(): raise SystemExit("dismissed")
${code}'`;
const inNode = (code: string) =>
  `node -e 'const { Entry } = require("${napi}"); const entry = new Entry("judge", "napi"); ${code}'`;
const docker = "docker-credential-secretservice";
const git = (operation: string, password = "") =>
  `printf 'protocol=https\\nhost=git.example\\nusername=me\\n'"${password}" | git-credential-libsecret ${operation}`;

const judges: readonly Judge[] = [
  {
    name: "secret-tool",
    isThere: has("which", "secret-tool"),
    store: `printf %s "$VALUE" | secret-tool store --label='a label' judge secret-tool user me`,
    lookup: "secret-tool lookup judge secret-tool user me",
    clear: "secret-tool clear judge secret-tool",
  },
  {
    name: "SecretStorage",
    isThere: hasPython("secretstorage"),
    store: inPython(`collection.create_item("a label", about, os.environ["VALUE"].encode(), replace=True)`),
    lookup: inPython("for item in collection.search_items(about): print(item.get_secret().decode())"),
    clear: inPython("for item in collection.search_items(about): item.delete()"),
  },
  {
    name: "Python's keyring",
    isThere: hasPython("keyring"),
    store: `${python} -m keyring set judge me <<< "$VALUE"`,
    lookup: `${python} -m keyring get judge me`,
    clear: `${python} -m keyring del judge me`,
  },
  {
    name: "go-keyring",
    isThere: has("go", "version") && existsSync(suites.goKeyring),
    store: `$PROGRAM/judge set "$VALUE"`,
    lookup: "$PROGRAM/judge get",
    clear: "$PROGRAM/judge delete",
    build: buildGoJudge,
  },
  {
    name: "@napi-rs/keyring",
    isThere: existsSync(napi),
    store: inNode("entry.setPassword(process.env.VALUE)"),
    lookup: inNode("const found = entry.getPassword(); if (found !== null) console.log(found)"),
    clear: inNode("entry.deletePassword()"),
  },
  {
    name: docker,
    isThere: has("which", docker),
    store: `printf '{"ServerURL":"https://r.example","Username":"me","Secret":"%s"}' "$VALUE" | ${docker} store`,
    lookup: `echo https://r.example | ${docker} get`,
    clear: `echo https://r.example | ${docker} erase`,
  },
  {
    name: "git-credential-libsecret",
    isThere: has("which", "git-credential-libsecret"),
    store: git("store", "password=$VALUE\\n"),
    lookup: git("get"),
    clear: git("erase"),
  },
];

describe("clients of the keyring", function () {
  this.timeout(400_000);
  const server = shareLocalServer({}, mustInit);
  const programs = shared(async () => {
    const built = new Map<Judge, string>();
    for (const judge of judges) {
      const place = temporaryDirectory();
      if (judge.isThere) await judge.build?.(place);
      built.set(judge, place);
    }
    return built;
  });

  /** Runs a shell script with the keyring. */
  async function withKeyring(script: string, more: Readonly<Record<string, string>> = {}) {
    const base = {
      STRONGROOM_HOME: server().home,
      PATH: path,
      LD_LIBRARY_PATH: join(directory, "lib"),
      LANG: "C.UTF-8",
    };
    return run(["keyring", "--", "timeout", "300", "bash", "-c", `set -e\n${script}`], { ...base, ...more });
  }

  const listed = () => mustList(server(), "?prefix=keyring/");

  const asJudge = (judge: Judge, script: string, value = "") =>
    withKeyring(script, { VALUE: value, PROGRAM: programs().get(judge) ?? "" });

  async function must(script: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
    const { code, stdout, stderr } = await withKeyring(script, more);
    expect(code, `${stdout}${stderr}`).to.equal(0);
    return stdout;
  }

  for (const judge of judges) {
    const { name, isThere, store, lookup, clear } = judge;

    it(`${name} stores a secret, finds it, replaces it and deletes it`, async function () {
      needs(this, isThere, name);
      const script = `${store}\n${lookup}\nVALUE=second\n${store}\n${lookup}\n${clear}\n(${lookup}) || echo missing`;
      const { code, stdout, stderr } = await asJudge(judge, script, "first-value");
      expect(code, stderr).to.equal(0);
      expect(stdout.match(/first-value|second/g), `${stdout}${stderr}`).to.include.members(["first-value", "second"]);
      expect(stdout.slice(stdout.lastIndexOf("second"))).not.to.contain("first-value");
      expect(stdout.split("second")).to.have.length(name.startsWith("git") ? 3 : 2, "the deleted secret was found");
      const left = (await listed()).filter((entry) => !entry.path.endsWith(".collection"));
      expect(left).to.deep.equal([]);
    });
  }

  it("clients fail while the vault is locked, overwrite nothing, and find their items after the unlock", async () => {
    const there = judges.filter(({ isThere }) => isThere);
    for (const judge of there) expect((await asJudge(judge, judge.store, "kept")).code, judge.name).to.equal(0);
    const before = await listed();
    await mustLock(server());
    const attempts = await Promise.all(
      there.flatMap((judge) => [judge.lookup, judge.store].map((script) => asJudge(judge, script, "lost"))),
    );
    await mustUnlock(server());
    for (const [n, { code, stdout, stderr }] of attempts.entries())
      expect(code, `${there[n >> 1]?.name} ${stdout}${stderr}`).not.to.equal(0);
    expect(await listed()).to.deep.equal(before);
    for (const judge of there) expect((await asJudge(judge, judge.lookup)).stdout, judge.name).to.contain("kept");
  });

  it("secret-tool prints attributes and label of all items that it searches", async function () {
    needs(this, has("which", "secret-tool"), "secret-tool (libsecret-tools)");
    const printed = await must(`
printf one | secret-tool store --label='a label' searched yes user me
printf two | secret-tool store --label='a label' searched yes user you
secret-tool search --all searched yes 2>&1`);
    for (const line of ["label = a label", "secret = one", "secret = two", "attribute.user = you"])
      expect(printed).to.contain(`${line}\n`);
  });

  it("SecretStorage passes its own tests", async function () {
    needs(this, hasPython("secretstorage") && existsSync(suites.secretStorage), "SecretStorage and its tests");
    const tests = "collection context_manager exceptions item unlocking".split(" ").map((each) => `tests.test_${each}`);
    const script = `cd ${suites.secretStorage} && ${python} -m unittest ${tests.join(" ")} 2>&1`;
    expect(await must(script, { PYTHONPATH: suites.secretStorage })).to.match(/\nRan \d\d tests .*\n\nOK/);
  });

  it("zalando/go-keyring passes its own tests", async function () {
    needs(this, has("go", "version") && existsSync(suites.goKeyring), "Go, and go-keyring");
    await must(`cd ${suites.goKeyring} && go test -count=1 . >&2`, await goCaches());
  });

  /** A program that logs in, in scripts: `status` prints `shown`; while the vault is locked it fails. */
  type Login = { readonly login: string; readonly status: string; readonly shown: string; readonly logout: string };

  /** The value is in the vault and in no file of the directory, also after a try while locked; the logout deletes it. */
  async function mustKeepLogin({ login, status, shown, logout }: Login, place: string, more: Record<string, string>) {
    expect(await must(`${login}\n${status}`, more)).to.contain(shown);
    const before = await listed();
    const stored = before.filter(({ path }) => !path.endsWith(".collection"));
    expect(stored).not.to.have.length(0);
    for (const { path } of stored) expect((await mustGet(server(), path))["value"]).to.contain(more["VALUE"]);
    const files = readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const { parentPath, name } of files)
      expect(readFileSync(join(parentPath, name), "utf8"), name).not.to.contain(more["VALUE"]);
    await mustLock(server());
    expect((await withKeyring(status, more)).code).not.to.equal(0);
    await mustUnlock(server());
    expect(await listed()).to.deep.equal(before);
    expect(await must(status, more)).to.contain(shown);
    await must(logout, more);
    expect((await listed()).filter(({ path }) => !path.endsWith(".collection"))).to.deep.equal([]);
  }

  it("Codex keeps its API key in the keyring alone, and deletes it at its logout", async function () {
    needs(this, existsSync(codex), "@openai/codex");
    const [place, run] = [temporaryDirectory(), `${codex} -c cli_auth_credentials_store=keyring`];
    const login = `printf %s "$VALUE" | ${run} login --with-api-key`;
    const scripts = { login, status: `${run} login status 2>&1`, shown: "API key configured", logout: `${run} logout` };
    await mustKeepLogin(scripts, place, { CODEX_HOME: place, VALUE: "sk-judge-0123456789-codex" });
  });

  it("gh keeps its token in the keyring alone, and deletes it at its logout", async function () {
    needs(this, has("gh", "version"), "gh");
    const github = createServer((request, response) => {
      response.setHeader("X-OAuth-Scopes", "repo, read:org, gist");
      response.end(request.url?.endsWith("graphql") ? '{ "data": { "viewer": { "login": "me" } } }' : "{}");
    }).listen(0, "127.0.0.1");
    await once(github, "listening");
    later(() => void github.close());
    const [place, host] = [temporaryDirectory(), "--hostname github.localhost"];
    const token = "gho_0123456789abcdefghijABCDEFGHIJ012345";
    const login = `printf %s "$VALUE" | gh auth login ${host} --git-protocol https --with-token`;
    const logout = `gh auth logout ${host}`;
    const proxy = `http://127.0.0.1:${(github.address() as AddressInfo).port}`; // gh asks api.github.localhost without TLS
    const more = { GH_CONFIG_DIR: place, VALUE: token, http_proxy: proxy };
    await mustKeepLogin({ login, status: `gh auth token ${host}`, shown: token, logout }, place, more);
  });

  it("Chromium finds its key again in later runs, also after one with a locked vault", async function () {
    needs(this, has("chromium", "--version"), "chromium");
    const profile = temporaryDirectory();
    const start = `timeout 60 chromium --headless --no-sandbox --disable-gpu --password-store=gnome-libsecret \\
  --user-data-dir=${profile} --virtual-time-budget=4000 --dump-dom 'data:text/html,<p>x' > /dev/null 2>&1 || true`;
    const before = await listed();
    const runtime = { XDG_RUNTIME_DIR: temporaryDirectory() };
    await must(start, runtime);
    const first = await listed();
    expect(first.length).to.be.greaterThan(before.length);
    await must(start, runtime);
    await mustLock(server());
    await must(start, runtime);
    await mustUnlock(server());
    await must(start, runtime);
    expect(await listed()).to.deep.equal(first);
  });

  it("jeepney's messages are read, and written as it writes them, in both byte orders", async function () {
    needs(this, hasPython("jeepney"), "Python with jeepney");
    const file = join(temporaryDirectory(), "messages.py");
    writeFileSync(file, randomMessages);
    const { status, stdout, stderr } = await runProgram(python, [file], process.env);
    expect(status, stderr).to.equal(0);
    const lines = stdout.trim().split("\n");
    expect(lines).to.have.length(200);
    for (const line of lines) {
      const [little, big] = line.split(" ").map((hex) => Uint8Array.from(Buffer.from(hex, "hex")));
      const messages = [little, big].map((bytes = new Uint8Array()) => {
        expect(messageLength(bytes, 2 ** 27)).to.equal(bytes.length);
        return Buffer.from(writeMessage(readMessage(bytes))).toString("hex");
      });
      expect(messages[0]).to.equal(messages[1]);
      const length = new DataView((little ?? new Uint8Array()).buffer).getUint32(4, true);
      expect(messages[0]?.slice(-2 * length)).to.equal(
        Buffer.from(little ?? [])
          .toString("hex")
          .slice(-2 * length),
      );
    }
  });
});

/** Builds a program that uses go-keyring as its README does. */
async function buildGoJudge(place: string): Promise<void> {
  const source = join(place, "source");
  cpSync(suites.goKeyring, source, { recursive: true });
  mkdirSync(join(source, "judge"));
  writeFileSync(join(source, "judge", "main.go"), goJudge);
  const environment = { PATH: path, HOME: process.env["HOME"], ...(await goCaches()) };
  await mustRun("go", ["build", "-o", join(place, "judge"), "./judge"], environment, source);
}

const goJudge = `package main

import (
	"fmt"
	"os"

	"github.com/zalando/go-keyring"
)

func main() {
	var err error
	var value string
	switch os.Args[1] {
	case "set":
		err = keyring.Set("judge", "go", os.Args[2])
	case "get":
		value, err = keyring.Get("judge", "go")
		fmt.Println(value)
	case "delete":
		err = keyring.Delete("judge", "go")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;
/** Returns the settings that let Go find its caches from another home. */
async function goCaches(): Promise<Readonly<Record<string, string>>> {
  return JSON.parse(await mustRun("go", ["env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"], process.env));
}

/** 200 messages with bodies of random types, by jeepney: in hex, little and big endian. */
const randomMessages = `
import random
from jeepney import DBusAddress, new_method_call
from jeepney.low_level import Endianness
random.seed(54)
def text(): return "".join(random.choice("aé✓ 'x") for _ in range(random.randrange(12)))
def basic():
    return random.choice([("y", lambda: random.randrange(256)), ("q", lambda: random.randrange(2**16)),
      ("n", lambda: random.randrange(-2**15, 2**15)), ("u", lambda: random.randrange(2**32)),
      ("i", lambda: random.randrange(-2**31, 2**31)), ("x", lambda: random.randrange(-2**63, 2**63)),
      ("t", lambda: random.randrange(2**64)), ("d", lambda: random.random()), ("b", lambda: random.random() < .5),
      ("s", text), ("o", lambda: "/a/b_%d" % random.randrange(9)), ("g", lambda: random.choice(["", "a{sv}", "(ay)"]))])
def some(depth):
    kind = random.random()
    if depth == 0 or kind < .4: return basic()
    inner, make = some(depth - 1)
    if kind < .5: return ("v", lambda: (inner, make()))
    if kind < .6: return ("ay", lambda: bytes(random.randrange(256) for _ in range(random.randrange(30))))
    if kind < .75: return ("a" + inner, lambda: bytes([make()]) if inner == "y" else [make() for _ in range(random.randrange(3))])
    if kind < .85: return ("a{s%s}" % inner, lambda: {text(): make() for _ in range(random.randrange(3))})
    other, more = some(depth - 1)
    return ("(%s%s)" % (inner, other), lambda: (make(), more()))
for n in range(200):
    types = [some(3) for _ in range(random.randrange(1, 4))]
    signature = "".join(each for each, _ in types)
    body = tuple(make() for _, make in types)
    both = []
    for order in (Endianness.little, Endianness.big):
        message = new_method_call(DBusAddress("/a", bus_name="d.E", interface="x.Y"), "M", signature, body)
        message.header.endianness = order
        both.append(message.serialise(serial=n + 1).hex())
    print(*both)
`;
