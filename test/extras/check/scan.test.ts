/** `strongroom scan`: values of the vault in files, staged changes and git's history. */
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { mainFile, node } from "../../../tools/rig/process.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustPut } from "../../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "../../cli/run-command.js";
import { makeZip } from "../../cli/zip-archive.js";
import type { Finished } from "../../support/command-here.js";

const value = () => randomBytes(20).toString("base64url");
const [password, token, other] = [value(), value(), value()];
const certificate = randomBytes(300);
const line = randomBytes(48).toString("base64");

const identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgSign=false"];

function repository(): { readonly directory: string; readonly git: (...args: readonly string[]) => string } {
  const directory = temporaryDirectory();
  const git = (...args: readonly string[]) => gitIn(directory, ...args);
  git("init", "-q");
  return { directory, git };
}

describe("strongroom scan", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/password", password);
    await mustPut(started, "app/token", { value: `${token}\n` });
    await mustPut(started, "app/pem", { value: `-----BEGIN KEY-----\n${line}\n-----END KEY-----\n` });
    await mustPut(started, "app/cert", { value: certificate.toString("base64"), encoding: "base64" });
    await mustPut(started, "app/short", "short");
    await mustPut(started, "app/common", "password1");
    await mustPut(started, "app/username", "the-administrator");
  });
  const scan = (cwd: string, ...args: readonly string[]) => strongroom(server(), ["scan", ...args], { cwd });
  const mustFind = ({ code, stdout, stderr }: Finished, ...lines: readonly string[]) => {
    expect(stderr).to.equal("");
    expect(stdout.split("\n").slice(0, -2)).to.deep.equal(lines);
    expect(code).to.equal(12);
    for (const each of [password, token, line]) expect(stdout).not.to.contain(each);
  };

  it("scan starts no program that a repository's settings name", async () => {
    const { directory, git } = repository();
    const ran = join(temporaryDirectory(), "ran");
    const program = join(temporaryDirectory(), "program");
    writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> '${ran}'\nexit 1\n`, { mode: 0o755 });
    writeFileSync(join(directory, ".gitattributes"), "* diff=own filter=own\n");
    writeFileSync(join(directory, "lost"), "a version that is not here\n");
    writeFileSync(join(directory, "a"), `x ${password}\n`);
    git("add", ".");
    git("commit", "-qm", "one");
    const commit = git("cat-file", "commit", "HEAD").replace(
      /\n\n/,
      "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\n",
    );
    const file = join(temporaryDirectory(), "commit");
    writeFileSync(file, commit);
    git("update-ref", "HEAD", git("hash-object", "-t", "commit", "-w", file).trim());
    const lost = git("rev-parse", "HEAD:lost").trim();
    const hook = join(directory, ".git", "hooks", "post-index-change");
    mkdirSync(join(directory, ".git", "hooks"), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\nexec '${program}' hook\n`, { mode: 0o755 });
    for (const [name, setting] of [
      ["core.repositoryFormatVersion", "1"],
      ["extensions.partialClone", "origin"],
      ["remote.origin.promisor", "true"],
      ["remote.origin.url", "ssh://host.invalid/repository"],
      ["protocol.ssh.allow", "always"],
      ...["core.sshCommand", "core.fsmonitor", "core.pager", "gpg.program", "diff.external", "credential.helper"].map(
        (each) => [each, program],
      ),
      ...["diff.own.textconv", "diff.own.command", "filter.own.clean", "filter.own.smudge"].map((each) => [
        each,
        program,
      ]),
      ["log.showSignature", "true"],
    ])
      git("config", name ?? "", setting ?? "");
    rmSync(ran, { force: true }); // what our own git has started
    rmSync(join(directory, ".git", "objects", lost.slice(0, 2), lost.slice(2)));
    writeFileSync(join(directory, "a"), `y ${password}\n`);
    for (const flags of [[], ["--staged"], ["--ignored"]]) {
      const { code, stdout, stderr } = await scan(directory, ...flags);
      expect(existsSync(ran) ? readFileSync(ran, "utf8") : "", `scan ${flags.join(" ")}`).to.equal("");
      expect(stderr).not.to.contain(password);
      if (flags[0] === "--staged") continue;
      expect(code, stderr).to.equal(12);
      expect(stdout).to.contain("app/password");
      expect(stderr).to.contain(`object ${lost}: git does not have it here: fetch it first`);
    }
  });

  it("scan names file, line and path of each value, in any form, and exits with 12", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, "deep"));
    writeFileSync(join(directory, "deep", "config.yml"), `user: x\npassword: "${password}"\nagain: ${password}\n`);
    writeFileSync(join(directory, "k8s.yml"), `token: ${Buffer.from(token).toString("base64")}\n`);
    writeFileSync(join(directory, "indented"), `key: |\n  -----BEGIN KEY-----\n  ${line}\n`);
    writeFileSync(join(directory, "cert"), Buffer.concat([Buffer.from([0, 1]), certificate]));
    const { code, stdout, stderr } = await scan(directory);
    expect({ code, stderr }).to.deep.equal({ code: 12, stderr: "" });
    expect(stdout.split("\n").sort().slice(1)).to.deep.equal(
      [
        "cert: app/cert",
        "deep/config.yml:2: app/password",
        "deep/config.yml:3: app/password",
        "indented:3: app/pem",
        "k8s.yml:1: app/token",
        "4 files searched for 4 secrets: 5 values found: replace each of them; not searched for: 1 under 8 bytes, 2 easily guessed",
      ].sort(),
    );
    expect(JSON.parse((await scan(directory, "--json")).stdout)).to.deep.include({ ok: false, files: 4, searched: 4 });
  });

  it("scan finds nothing where there is nothing, and common values only with --all", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "a"), `password1 the-administrator short ${other} ${password.slice(0, -1)}\n`);
    expect(mustDo(await scan(directory)).stdout).to.match(/^1 file searched for 4 secrets: no values found;/);
    mustFind(await scan(directory, "--all"), "a:1: app/common", "a:1: app/username");
    mustRefuseWith(await scan(directory, "missing"), 2, "missing");
  });

  it("scan finds what git's history holds, with its commit, and nothing that git ignores", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, "config"), `a\n${password}\n`);
    writeFileSync(join(directory, ".gitignore"), ".env\n");
    git("add", ".");
    git("commit", "-q", "-m", "add");
    const commit = git("rev-parse", "--short", "HEAD").trim();
    writeFileSync(join(directory, "config"), "clean\n");
    git("commit", "-q", "-a", "-m", "clean");
    writeFileSync(join(directory, ".env"), `TOKEN=${token}\n`);
    mustFind(await scan(directory), `config:2: app/password  (commit ${commit})`);
    mustDo(await scan(directory, "--no-history"));
    mustFind(await scan(directory, "--no-history", "--ignored"), ".env:1: app/token");
    writeFileSync(join(directory, "untracked name\n"), token);
    mustFind(await scan(directory, "--no-history"), "untracked name\\u{a}:1: app/token");
  });

  it("scan searches what is staged, as a hook that refuses the commit", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, "config"), `${password}\n`);
    mustDo(await scan(directory, "--staged"));
    git("add", ".");
    writeFileSync(join(directory, "config"), "no longer there, but staged\n");
    mustFind(await scan(directory, "--staged"), "config:1: app/password");
    const hook = join(directory, ".git", "hooks", "pre-commit");
    mkdirSync(join(directory, ".git", "hooks"), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\nexec "${node}" "${mainFile}" scan --staged --home "${server().home}"\n`);
    chmodSync(hook, 0o755);
    const commit = () => gitCommit(directory);
    expect(await commit()).to.equal(1);
    rmSync(join(directory, "config"));
    git("add", "-A");
    writeFileSync(join(directory, "clean"), "clean\n");
    git("add", ".");
    expect(await commit()).to.equal(0);
    mustRefuseWith(await scan(temporaryDirectory(), "--staged"), 2, "is not in a git repository");
  });
});

/** A value in many encodings and kinds of places: it is found, or the place is named with the reason. */
describe("strongroom scan of planted values", () => {
  const planted = 'Kx7"q&Zr4/Lw8+Tn%m';
  const plain = randomBytes(18).toString("base64url");
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/marked", planted);
    await mustPut(started, "app/plain", plain);
    for (const [name, value] of Object.entries(urls)) await mustPut(started, `shop/${name}`, value);
  });
  const scan = (cwd: string, ...args: readonly string[]) => strongroom(server(), ["scan", ...args], { cwd });

  const b64 = (text: string | Buffer) => Buffer.from(text).toString("base64");
  const wide = (text: string) => Buffer.from(text, "utf16le");
  const entities = (text: string) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
  const units = (text: string) =>
    [...text].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  const wrapped = (text: string) => text.replace(/(.{76})/g, "$1\n    ");
  const config = (value: string) => JSON.stringify({ auths: { "r.example": { auth: b64(`ann:${value}`) } } });

  const encodings: Readonly<Record<string, (value: string) => string | Buffer>> = {
    "as it is": (value) => `key: ${value}\n`,
    "base64 of the value": b64,
    "base64 of user and value (Basic)": (value) => `Authorization: Basic ${b64(`ann:${value}`)}`,
    "base64 one byte later": (value) => b64(`anna:${value}`),
    "base64 two bytes later": (value) => b64(`annab:${value}`),
    "base64 in the URL's alphabet": (value) => Buffer.from(`x:${value}`).toString("base64url"),
    "docker's auth": config,
    "docker's auth in a manifest": (value) => `.dockerconfigjson: ${b64(config(value))}`,
    "base64 of base64 of base64": (value) => b64(b64(b64(`${"text before it ".repeat(4)}${value}`))),
    "base64 over several lines": (value) => wrapped(b64(`${"text ".repeat(9)}${value}${" text".repeat(30)}`)),
    "base64 after a slash": (value) => `https://x.example/${b64(`{"text":"${"x".repeat(50)}", ${value}`)}`,
    "PowerShell's encoded command": (value) => `-EncodedCommand ${wide(`x ${value}`).toString("base64")}`,
    "UTF-16 little endian with a mark": (value) => Buffer.concat([Buffer.from([0xff, 0xfe]), wide(`a = ${value}`)]),
    "UTF-16 big endian with a mark": (value) => wide(`\ufeffa = ${value}`).swap16(),
    "UTF-16 without a mark": (value) => wide(`a longer text = ${value}`),
    "UTF-16 within a binary": (value) => Buffer.concat([randomBytes(2_001), wide(value), randomBytes(2_001)]),
    "base64 within UTF-16": (value) => wide(`\ufefftoken ${b64(`a:${value}`)}`),
    "UTF-32": (value) =>
      Buffer.concat(
        [..."\ufeff", ...value].map((each) => Buffer.from(Uint32Array.of(each.codePointAt(0) ?? 0).buffer)),
      ),
    hex: (value) => Buffer.from(value).toString("hex"),
    "hex in capitals": (value) => Buffer.from(value).toString("hex").toUpperCase(),
    JSON: (value) => JSON.stringify({ a: value }),
    "JSON with escaped slashes": (value) => JSON.stringify(value).replace(/\//g, "\\/"),
    "JSON in JSON": (value) => JSON.stringify({ a: JSON.stringify({ b: value }) }),
    "JSON in units": (value) => `{"a": "${units(value)}"}`,
    "escaped in hex": (value) => [...Buffer.from(value)].map((byte) => `\\x${byte.toString(16)}`).join(""),
    "a URL": (value) => `https://u:${encodeURIComponent(value)}@x.example/`,
    "a URL, every byte": (value) => Buffer.from(value).toString("hex").replace(/../g, "%$&"),
    "a URL within a URL": (value) => encodeURIComponent(`https://x.example/?a=${encodeURIComponent(value)}`),
    HTML: (value) => `<input value="${entities(value)}">`,
    "HTML by numbers": (value) => [...value].map((each) => `&#${each.charCodeAt(0)};`).join(""),
    "quoted-printable": (value) =>
      [...Buffer.from(value)].map((byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
    gzip: (value) => gzipSync(`a ${value}`),
    "base64 of gzip": (value) => b64(gzipSync(`${"text ".repeat(9)}${value}`)),
    "the middle of a line of 100,000 characters": (value) =>
      `${"x;".repeat(25_000)}${JSON.stringify(value)}${"x;".repeat(25_000)}`,
  };

  it("scan finds a value in each encoding, on its line", async () => {
    const directory = temporaryDirectory();
    for (const [name, encode] of Object.entries(encodings)) {
      writeFileSync(join(directory, `${name}, plain`), encode(plain));
      writeFileSync(join(directory, `${name}, marked`), encode(planted));
    }
    const { found, skipped } = parseScan(await scan(directory, "--json"));
    expect(skipped).to.deep.equal([]);
    const seen = new Set(found.map(({ file, path }) => `${file} ${path}`));
    for (const name of Object.keys(encodings))
      for (const kind of ["plain", "marked"]) expect([...seen], name).to.include(`${name}, ${kind} app/${kind}`);
  });

  it("scan searches every kind of repository, and names what it skips", async () => {
    const directory = temporaryDirectory();
    const make = (name: string) => {
      const at = join(directory, name);
      mkdirSync(at, { recursive: true });
      const git = (...args: readonly string[]) => gitIn(at, ...args);
      git("init", "-q");
      const write = (file: string, text: string | Buffer = `${plain}\n`) => {
        writeFileSync(join(at, file), text);
        git("add", "-A");
      };
      const commit = (...more: readonly string[]) => git("commit", "-q", "--allow-empty", "-m", "change", ...more);
      return { at, git, write, commit };
    };
    const withHistory = (name: string) => {
      const made = make(name);
      made.write(name);
      made.commit();
      made.git("rm", "-q", name);
      made.commit();
      return made;
    };
    const origin = withHistory("packed");
    origin.git("gc", "-q", "--prune=now");
    gitIn(directory, "clone", "-q", "--bare", "packed", "bare.git");
    gitIn(directory, "clone", "-q", "--depth", "1", `file://${origin.at}`, "shallow");
    const ignoring = make("ignoring");
    ignoring.write(".gitignore", ".env\n");
    writeFileSync(join(ignoring.at, ".env"), plain);
    ignoring.commit();
    const hidden = make("hidden");
    hidden.commit();
    hidden.write("stashed");
    hidden.git("stash", "-q");
    hidden.write("amended", `second: ${plain}\n`);
    hidden.commit();
    hidden.git("rm", "-q", "amended");
    hidden.commit("--amend");
    writeFileSync(join(hidden.at, ".git", "description"), plain);
    hidden.git("hash-object", "-w", ".git/description");
    rmSync(join(hidden.at, ".git", "description"));
    const texts = make("texts");
    texts.git("commit", "-q", "--allow-empty", "-m", `the key is ${plain}`);
    texts.git("tag", "-a", "v1", "-m", `again ${plain}`);
    texts.git("remote", "add", "origin", `https://ann:${plain}@git.example/x`);
    const trees = make("trees");
    trees.commit();
    trees.git("worktree", "add", "-q", join(directory, "linked"));
    writeFileSync(join(directory, "linked", "in-linked"), plain);
    trees.git("worktree", "add", "-q", join(temporaryDirectory(), "elsewhere"));
    const modules = make("modules");
    modules.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin.at, "here");
    modules.commit();
    gitIn(directory, "clone", "-q", "modules", "not-checked-out");
    const large = make("large");
    const content = Buffer.from(`${"x".repeat(1_000)}${plain}`);
    const id = createHash("sha256").update(content).digest("hex");
    const pointer = (of: string) => `version https://git-lfs.github.com/spec/v1\noid sha256:${of}\nsize 1031\n`;
    large.write("stored.bin", pointer(id));
    large.write("missing.bin", pointer("ab".repeat(32)));
    large.write("huge.bin", pointer("cd".repeat(32)));
    const stored = join(large.at, ".git", "lfs", "objects", id.slice(0, 2), id.slice(2, 4));
    mkdirSync(stored, { recursive: true });
    writeFileSync(join(stored, id), content);
    const huge = join(large.at, ".git", "lfs", "objects", "cd", "cd");
    mkdirSync(huge, { recursive: true });
    writeFileSync(join(huge, "cd".repeat(32)), plain);
    truncateSync(join(huge, "cd".repeat(32)), 256 * 2 ** 20 + 1);
    large.commit();
    const replaced = withHistory("replaced");
    const blob = replaced.git("rev-parse", "HEAD~1:replaced").trim();
    writeFileSync(join(replaced.at, "other"), "nothing\n");
    replaced.git("replace", blob, replaced.git("hash-object", "-w", "other").trim());
    const sparse = make("sparse");
    sparse.write("kept", "nothing\n");
    mkdirSync(join(sparse.at, "away"));
    sparse.write("away/file");
    sparse.commit();
    sparse.git("sparse-checkout", "set", "--no-cone", "/kept");
    mkdirSync(join(directory, "plain"));
    writeFileSync(Buffer.concat([Buffer.from(join(directory, "plain", "caf")), Buffer.from([0xe9])]), plain);
    writeFileSync(join(directory, "plain", "a.xz"), Buffer.from("fd377a585a0000", "hex"));
    writeFileSync(join(directory, "plain", "cut.gz"), gzipSync(plain.repeat(50)).subarray(0, 40));
    symlinkSync("/etc/hostname", join(directory, "plain", "link"));
    symlinkSync("a.xz", join(directory, "plain", "inner-link"));

    const { found, skipped, code } = parseScan(await scan(directory, "--json"));
    const has = (name: string) => found.some(({ file }) => file === name || file.startsWith(`${name}:`));
    expect(
      [
        ...["packed/packed", "hidden/stashed", "hidden/amended", "texts/text of a commit", "texts/text of a tag"],
        ...["texts/.git/config", "linked/in-linked", "modules/here/packed", "large/stored.bin", "replaced/replaced"],
        ...["sparse/away/file", "plain/caf\\xe9"],
      ].filter((name) => !has(name)),
    ).to.deep.equal([]);
    expect(
      found.some(({ file }) => /^object [0-9a-f]{40}$/.test(file)),
      "an object without a name",
    ).to.equal(true);
    const why = (name: string) => skipped.find(({ file }) => file === name)?.why ?? "searched";
    expect(why("shallow/history")).to.contain("shallow");
    expect(why("not-checked-out/here")).to.contain("not checked out");
    expect(why("ignoring/.env")).to.contain("git ignores it");
    expect(why("large/missing.bin")).to.contain("Git LFS");
    expect(why("large/huge.bin")).to.contain("larger than 256 MiB");
    expect(why("plain/a.xz")).to.contain("compressed");
    expect(why("plain/cut.gz")).to.contain("compressed");
    expect(why("plain/link")).to.contain("leads out of the directory");
    expect(skipped.map(({ file }) => file)).not.to.include("plain/inner-link");
    expect(skipped.filter(({ why }) => why.startsWith("another work tree"))).to.have.lengthOf(1);
    expect(code).to.equal(12);
  });

  it("scan searches a bare repository, and git's own directory, by their history", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, "a"), plain);
    git("add", ".");
    git("commit", "-q", "-m", "add");
    git("rm", "-q", "a");
    git("commit", "-q", "-m", "remove");
    const bare = join(temporaryDirectory(), "bare");
    git("clone", "-q", "--bare", directory, bare);
    for (const place of [bare, join(directory, ".git")])
      expect(
        parseScan(await scan(place, "--json")).found.map(({ file }) => file.split("/")[0]),
        place,
      ).to.deep.equal(["a"]);
  });

  it("scan exits with 13 for skipped files, and with 0 for those that git ignores", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, ".gitignore"), "kept-out\n");
    writeFileSync(join(directory, "kept-out"), plain);
    git("add", ".");
    git("commit", "-q", "-m", "one");
    const done = mustDo(await scan(directory));
    expect(done.stdout).to.match(/no values found; .*1 that git ignores not searched: --ignored\n$/);
    for (let i = 0; i < 9; i++) writeFileSync(join(directory, `a${i}.xz`), Buffer.from(`fd377a585a000${i}`, "hex"));
    git("add", ".");
    for (const flags of [[], ["--staged"], ["--no-history"]]) {
      const { code, stdout, stderr } = await scan(directory, ...flags);
      expect(code).to.equal(13);
      expect(stdout)
        .to.match(/none found in them, and (?:9|18) places not searched/)
        .and.not.contain("no values found");
      expect(stderr)
        .to.match(/not searched: a0\.xz: it is compressed/)
        .and.match(/ more: it is compressed/);
    }
  });

  const text = Buffer.from(`key: ${plain}\n`);
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"ab".repeat(32)}\nsize 9\n`;
  const contents: readonly (readonly [what: string, name: string, content: Buffer | string, why: string])[] = [
    ["a packed member of a zip", "a.zip", makeZip({ "in/a.env": text }), ""],
    ["a stored member of a zip", "a.jar", makeZip({ "a.env": text }, { method: 0 }), ""],
    ["the second member of a zip", "b", makeZip({ x: "x", y: text }), ""],
    ["a zip within a zip", "c.zip", makeZip({ "d.zip": makeZip({ e: text }) }), ""],
    ["gzip within a zip", "d.zip", makeZip({ "e.gz": gzipSync(text) }), ""],
    ["base64 within a zip", "e.zip", makeZip({ f: b64(`ann:${plain}`) }), ""],
    ["an encrypted member", "f.zip", makeZip({ g: text }, { flags: 1 }), "encrypted"],
    ["a member of another method", "g.zip", makeZip({ h: gzipSync(text) }, { method: 93 }), "compressed"],
    ["a zip that is cut off", "h.zip", makeZip({ i: text }).subarray(0, -9), "compressed"],
    ["a zip without its list", "o.zip", makeZip({ p: text }).subarray(0, -40), "compressed"],
    ["a pointer whose content is not here", "i.bin", pointer, "Git LFS"],
    ["bzip2", "j.bz2", Buffer.from("425a6839314159265359", "hex"), "compressed"],
    ["zstd", "k.zst", Buffer.from("28b52ffd24000000", "hex"), "compressed"],
    ["7z", "l.7z", Buffer.from("377abcaf271c0004", "hex"), "compressed"],
    ["rar", "m.rar", Buffer.from("526172211a070100", "hex"), "compressed"],
    ["PDF", "n.pdf", "%PDF-1.7\n", "compressed"],
  ];

  it("scan finds a value in archives, and names each form that it cannot open", async () => {
    const { directory, git } = repository();
    /** A member's name stands after its archive's. */
    const outer = (places: readonly { readonly file: string }[]) => [
      ...new Set(places.map(({ file }) => file.split("/")[0])),
    ];
    for (const [what, name, content, why] of contents) {
      const alone = temporaryDirectory();
      for (const each of [alone, directory]) writeFileSync(join(each, name), content);
      const { code, found, skipped } = parseScan(await scan(alone, "--json"));
      expect(outer(found), what).to.deep.equal(why === "" ? [name] : []);
      expect(skipped.map((each) => each.why).join(), what).to.contain(why);
      expect(code, what).to.equal(why === "" ? 12 : 13);
    }
    git("add", "-A");
    git("commit", "-q", "-m", "one");
    git("rm", "-q", ...contents.map(([, name]) => name));
    git("commit", "-q", "-m", "two");
    const { found, skipped } = parseScan(await scan(directory, "--json"));
    expect(outer([...found, ...skipped])).to.have.members(contents.map(([, name]) => name));
  });

  it("scan names a file above the limit", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "large"), plain);
    truncateSync(join(directory, "large"), 256 * 2 ** 20 + 1);
    const { code, found, skipped } = parseScan(await scan(directory, "--json"));
    expect({ code, found, skipped }).to.deep.equal({
      code: 13,
      found: [],
      skipped: [{ file: "large", why: "it is larger than 256 MiB" }],
    });
    const { stdout, stderr } = await scan(directory);
    expect(stdout).not.to.contain("no values found");
    expect(stderr).to.contain("not searched: large: it is larger than 256 MiB");
  });

  it("scan finds secrets by their form at any path, also as a hook", async () => {
    const { directory, git } = repository();
    for (const [name, value] of Object.entries(urls)) writeFileSync(join(directory, name), `${name}=${value}\n`);
    git("add", ".");
    const { found, code } = parseScan(await scan(directory, "--staged", "--json", "--prefix", "shop"));
    expect(found.map(({ file, path }) => `${file} ${path}`)).to.have.members(
      Object.keys(urls).map((name) => `${name} shop/${name}`),
    );
    expect(code).to.equal(12);
  });
});

/** The README's example among them: none of these names may hide a value. */
const urls: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgres://app:pw-1@localhost/app",
  REDIS_URL: "redis://:hunter2@cache.example:6379/0",
  MONGO_URI: "mongodb+srv://app:s3cr3t@cluster0.example/app?w=majority",
  WEBHOOK_URL: "https://hooks.example.com/services/T0AB12CD3/B0EF45GH6/x7Kp2Qm9Zr4Lw8Tn",
  AWS_ACCESS_KEY_ID: "AKIA7Q3XWZP2LMN8RTKV",
  ACCOUNT: "0b1c7a2e-93d4-4f6a-8c55-1e2f3a4b5c6d",
  SENTRY_DSN: "https://9f8e7d6c5b4a39281706f5e4d3c2b1a0@o1.ingest.example/42",
  totp: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
};

type Scanned = {
  readonly code: number | null;
  readonly found: readonly { readonly file: string; readonly path: string; readonly line: number | null }[];
  readonly skipped: readonly { readonly file: string; readonly why: string }[];
};

function parseScan({ code, stdout, stderr }: Finished): Scanned {
  expect(stderr).to.equal("");
  return { ...(JSON.parse(stdout) as Scanned), code };
}

function gitIn(cwd: string, ...args: readonly string[]): string {
  return execFileSync("git", [...identity, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Commits without waiting in this thread, where the server runs. Returns the exit code. */
function gitCommit(cwd: string): Promise<number | null> {
  const child = spawn("git", [...identity, "commit", "-q", "-m", "change"], { cwd, stdio: "ignore" });
  return new Promise((resolve) => child.on("close", resolve));
}
