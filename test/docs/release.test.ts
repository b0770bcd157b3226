/** The packages of a release, built twice in two directories: equal bytes, and a program that works with its own Node. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readManifest } from "../../src/manifest.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";

const { version } = readManifest();

describe("releases", function () {
  this.timeout(0);
  before(function () {
    needs(this, process.env["STRONGROOM_RELEASE"] !== undefined, "STRONGROOM_RELEASE");
  });

  it("a release that is built again elsewhere has the same bytes, and its programs run", () => {
    const key = join(temporaryDirectory(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key]);
    const [first, second] = [build({ STRONGROOM_SIGNING_KEY: key }), build()];
    expectClean(join(first, `strongroom_${version}_amd64.deb`));
    expectSigned(first, readFileSync(`${key}.pub`, "utf8"));
    expect(readFileSync(join(first, "SHA256SUMS"), "utf8")).to.equal(readFileSync(join(second, "SHA256SUMS"), "utf8"));
    const root = temporaryDirectory();
    execFileSync("dpkg-deb", ["-x", join(first, `strongroom_${version}_amd64.deb`), root]);
    for (const name of [
      "strongroom",
      "git-credential-strongroom",
      "docker-credential-strongroom",
      "age-plugin-strongroom",
      "cargo-credential-strongroom",
      "terraform-credentials-strongroom",
    ]) {
      const command = realpathSync(join(root, "usr/lib/strongroom/bin", name));
      expect(execFileSync(command, ["version"], { encoding: "utf8" })).to.equal(`${version}\n`);
    }
  });
});

/** Clones the last commit, and returns the directory of its packages. */
function build(more: Readonly<Record<string, string>> = {}): string {
  const tree = join(temporaryDirectory(), "tree");
  execFileSync("git", ["clone", "--quiet", ".", tree]);
  const settings = { ...process.env, STRONGROOM_XZ_LEVEL: "0", ...more };
  execFileSync("npm", ["ci", "--silent", "--no-audit", "--no-fund"], { cwd: tree, stdio: "ignore" });
  execFileSync("npm", ["run", "--silent", "package"], { cwd: tree, env: settings, stdio: "ignore" });
  return join(tree, "packages/out");
}

/** Where lintian is installed. */
function expectClean(file: string): void {
  if (spawnSync("lintian", ["--version"]).status !== 0) return;
  const { status, stdout } = spawnSync("lintian", ["--allow-root", "--fail-on=error,warning", file], {
    encoding: "utf8",
  });
  expect(stdout).to.equal("");
  expect(status).to.equal(0);
}

/** Checks the signature as docs/operations.md says, and that it is not one of changed checksums. */
function expectSigned(directory: string, publicKey: string): void {
  const signers = join(temporaryDirectory(), "allowed_signers");
  writeFileSync(signers, `maintainers namespaces="strongroom-release" ${publicKey}`);
  const sums = readFileSync(join(directory, "SHA256SUMS"), "utf8");
  const [namespace, signature] = ["strongroom-release", join(directory, "SHA256SUMS.sig")];
  const args = ["-Y", "verify", "-f", signers, "-I", "maintainers", "-n", namespace, "-s", signature];
  const verify = (input: string) => spawnSync("ssh-keygen", args, { input, encoding: "utf8" }).status;
  expect([verify(sums), verify(sums.replace(/^./, "x"))]).to.deep.equal([0, 255]);
}
