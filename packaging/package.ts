/**
 * Entry point of `npm run package -- [DIRECTORY]` (Linux on x64 or arm64): the npm packages, a tarball and a .deb with their
 * own Node, the bill of materials, and checksums of all of them. The same commit gives the same bytes. With
 * STRONGROOM_SIGNING_KEY, the file of a private key of ssh, the checksums are signed.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { writeList } from "../prove/program.js";
import { readManifest } from "../src/manifest.js";
import { type Arch, fetchNode, nodeVersion } from "./node-runtime.js";
import { stagePackage } from "./packed-manifest.js";

const { version } = readManifest();
const maintainer = "Strongroom maintainers <maintainers@strongroom.example>";
const debianNames: Readonly<Record<Arch, string>> = { x64: "amd64", arm64: "arm64" };

/** The commit's time, which every file in the packages gets. */
const epoch = process.env["SOURCE_DATE_EPOCH"] ?? run("git", ["log", "-1", "--format=%ct"]).trim();

const work = mkdtempSync(join(tmpdir(), "strongroom-package-"));

function packageInto(directory: string, arch: Arch): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const staged = join(work, "npm");
  stagePackage(staged);
  const npmPackage = pack([staged], directory);
  run("npm", ["run", "--silent", "copy", "-w", "strongroom-client"]);
  pack(["-w", "strongroom-client"], directory);
  run("npm", ["run", "--silent", "copy", "-w", "strongroom-mcp"]);
  pack(["-w", "strongroom-mcp"], directory);
  const program = makeProgram(join(directory, npmPackage), arch);
  run("tar", [...tarFlags, "-cf", join(directory, `strongroom-${version}-linux-${arch}.tar.xz`), "-C", work, program]);
  buildDeb(join(work, program), debianNames[arch], directory);
  copyFileSync(join(work, program, "dist/share/sbom.cdx.json"), join(directory, `strongroom-${version}.cdx.json`));
  writeChecksums(directory);
}

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  return execFileSync(command, args, {
    env: { ...process.env, ...env },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function pack(args: readonly string[], directory: string): string {
  return run("npm", ["pack", "--ignore-scripts", "--silent", ...args, "--pack-destination", directory]).trim();
}

/** 6 takes a minute and makes the archives a quarter smaller than 1. */
const level = process.env["STRONGROOM_XZ_LEVEL"] ?? "6";
const owner = ["--owner=0", "--group=0", "--numeric-owner"];
const tarFlags = [
  "--sort=name",
  `--mtime=@${epoch}`,
  ...owner,
  "--format=gnu",
  `--use-compress-program=xz -${level} -T1`,
];

/** The command under the names by which git and docker look for it. */
const helpers = readdirSync("bin")
  .filter((name) => name.endsWith("-strongroom.cjs"))
  .map((name) => name.replace(/\.cjs$/, ""));

/** The npm package with Node beside it; returns its directory's name in `work`. */
function makeProgram(npmPackage: string, arch: Arch): string {
  const name = `strongroom-${version}-linux-${arch}`;
  const program = join(work, name);
  extract(npmPackage, program);
  const node = join(work, "node");
  extract(fetchNode(arch, work), node);
  for (const helper of helpers) rmSync(join(program, `bin/${helper}.cjs`));
  copy(join(node, "bin/node"), join(program, "bin/node"), 0o755);
  copy("packaging/launcher.sh", join(program, "bin/strongroom"), 0o755);
  for (const helper of helpers) symlinkSync("strongroom", join(program, "bin", helper));
  copy(join(node, "LICENSE"), join(program, "NODE-LICENSE"), 0o644);
  writeList(program); // the list in the npm package names commands that the launcher replaces
  return name;
}

function extract(archive: string, directory: string): void {
  mkdirSync(directory);
  run("tar", ["-xzf", archive, "-C", directory, "--strip-components=1"]);
  run("chmod", ["-R", "u=rwX,go=rX", directory]);
}

function copy(from: string, to: string, mode: number): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, mode);
}

function write(file: string, text: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
}

function buildDeb(program: string, arch: string, directory: string): void {
  const root = join(work, "deb");
  const place = join(root, "usr/lib/strongroom");
  const share = join(root, "usr/share");
  cpSync(program, place, { recursive: true, verbatimSymlinks: true }); // without it the links would lead to the copied directory
  for (const name of readdirSync(place)) if (/^[A-Z-]+(?:\.md)?$/.test(name)) rmSync(join(place, name));
  for (const name of ["dist/share", ...documents]) rmSync(join(place, name), { recursive: true, force: true });
  copy("packaging/debian/publish-certificate", join(place, "bin/publish-certificate"), 0o755);
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  for (const name of ["strongroom", ...helpers])
    symlinkSync("../lib/strongroom/bin/strongroom", join(root, "usr/bin", name));
  copy("packaging/debian/strongroom.service", join(root, "usr/lib/systemd/system/strongroom.service"), 0o644);
  copy("packaging/debian/strongroom.env", join(root, "etc/strongroom/strongroom.env"), 0o644);
  const made = join(program, "dist/share");
  const manual = join(share, "man/man1");
  write(join(manual, "strongroom.1.gz"), gzipped(readFileSync(join(made, "man/strongroom.1"))));
  for (const helper of helpers) symlinkSync("strongroom.1.gz", join(manual, `${helper}.1.gz`));
  copy("packaging/debian/lintian-overrides", join(share, "lintian/overrides/strongroom"), 0o644);
  for (const [from, to] of completions) copy(join(made, "completions", from), join(share, to), 0o644);
  writeDocuments(join(share, "doc/strongroom"), program);
  writeControl(root, arch);
  run("chmod", ["-R", "go-w", root]);
  const file = join(directory, `strongroom_${version}_${arch}.deb`);
  run("dpkg-deb", ["--root-owner-group", "-Zxz", `-z${level}`, "--build", root, file], { SOURCE_DATE_EPOCH: epoch });
}

const completions = [
  ["strongroom.bash", "bash-completion/completions/strongroom"],
  ["_strongroom", "zsh/vendor-completions/_strongroom"],
  ["strongroom.fish", "fish/vendor_completions.d/strongroom.fish"],
] as const;

/** Documents and what they link to. */
const documents = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "openapi.yaml", "docs", "packages"];

function gzipped(input: string | Uint8Array): Uint8Array {
  return execFileSync("gzip", ["-9n"], { input, maxBuffer: 2 ** 28 });
}

function writeDocuments(directory: string, program: string): void {
  const text = (name: string) => readFileSync(join(program, name), "utf8");
  const licences = ["LICENSE", "dist/NOTICE", "NODE-LICENSE"].map(text);
  write(join(directory, "copyright"), licences.join(`\n${"=".repeat(80)}\n\n`));
  const date = new Date(Number(epoch) * 1000).toUTCString().replace("GMT", "+0000");
  const entry = `strongroom (${version}) unstable; urgency=medium\n\n  * Version ${version}: see CHANGELOG.md.gz.\n\n -- ${maintainer}  ${date}\n`;
  write(join(directory, "changelog.gz"), gzipped(entry));
  write(join(directory, "CHANGELOG.md.gz"), gzipped(text("CHANGELOG.md")));
  for (const name of documents) cpSync(join(program, name), join(directory, name), { recursive: true });
  copy(join(program, "dist/share/sbom.cdx.json"), join(directory, "sbom.cdx.json"), 0o644);
}

function writeControl(root: string, arch: string): void {
  const control = `Package: strongroom
Version: ${version}
Section: utils
Priority: optional
Architecture: ${arch}
Maintainer: ${maintainer}
Installed-Size: ${run("du", ["-sk", "--apparent-size", root]).split("\t")[0]}
Depends: adduser, libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6
Suggests: xclip | wl-clipboard
Description: local vault for secrets with an isolated key
 Strongroom keeps secrets encrypted under paths and serves them over HTTPS to
 its command line and to programs. The master key lives in a thread without
 input and output. This package has its own Node ${nodeVersion}.
`;
  const debian = join(root, "DEBIAN");
  write(join(debian, "control"), control);
  write(join(debian, "conffiles"), "/etc/strongroom/strongroom.env\n");
  for (const script of ["postinst", "prerm", "postrm"]) {
    copy(join("packaging/debian", script), join(debian, script), 0o755);
  }
}

function writeChecksums(directory: string): void {
  const lines = readdirSync(directory).map((name) => {
    return `${createHash("sha256")
      .update(readFileSync(join(directory, name)))
      .digest("hex")}  ${name}\n`;
  });
  const sums = join(directory, "SHA256SUMS");
  writeFileSync(sums, lines.join(""));
  process.stdout.write(lines.join(""));
  const key = process.env["STRONGROOM_SIGNING_KEY"];
  if (key !== undefined) run("ssh-keygen", ["-Y", "sign", "-f", key, "-n", "strongroom-release", sums]);
}

try {
  packageInto(resolve(process.argv[2] ?? "packages/out"), process.arch === "arm64" ? "arm64" : "x64");
} finally {
  rmSync(work, { recursive: true, force: true });
}
