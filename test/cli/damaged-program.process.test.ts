/** The command when files of the program are missing or damaged, as after an update that was interrupted. */
import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, environment, node, startProcess } from "../../tools/rig/process.js";
import { mustRefuse, send } from "../../tools/rig/test-client.js";

const damages: Readonly<Record<string, (file: string) => void>> = {
  missing: (file) => rmSync(file),
  empty: (file) => writeFileSync(file, ""),
  "cut in half": (file) => writeFileSync(file, readFileSync(file).subarray(0, readFileSync(file).length / 2)),
  noise: (file) => writeFileSync(file, Buffer.alloc(4096, 0xa7)),
};

describe("programs with missing or damaged files", function () {
  this.timeout(60_000);
  let root = "";
  before(function () {
    needs(this, process.env["STRONGROOM_PROGRAM"] === undefined, "the build of this directory");
    root = temporaryDirectory();
    for (const name of ["bin", "dist/program", "dist/workers/key-worker.cjs", "dist/SHA256SUMS"]) copy(name);
    for (const name of ["package.json", "dist/openapi.json"]) copy(name);
    cpSync("packaging/launcher.sh", join(root, "bin/strongroom")); // as in the packages with a Node of their own
    chmodSync(join(root, "bin/strongroom"), 0o755);
    linkNode();
  });

  function linkNode(): void {
    rmSync(join(root, "bin/node"), { force: true });
    symlinkSync(node, join(root, "bin/node"));
  }

  function copy(name: string): void {
    mkdirSync(join(root, name, ".."), { recursive: true });
    cpSync(name, join(root, name), { recursive: true });
  }

  async function run(args: readonly string[]) {
    const home = temporaryDirectory();
    const env = environment({ STRONGROOM_HOME: home });
    return collect(spawn(join(root, "bin/strongroom"), args, { env, cwd: home })).ended;
  }

  const rows: readonly (readonly [file: string, args: readonly string[]])[] = [
    ["package.json", ["version"]],
    ["dist/program/entry.cjs", ["version"]],
    ["dist/program/main.cjs", ["version"]],
    ["dist/program/get.cjs", ["get", "a"]],
    ["dist/program/client.cjs", ["status"]],
  ];
  for (const [file, args] of rows) {
    it(`${args[0]} ends with one line, whatever has happened to ${file}`, async () => {
      for (const [name, damage] of Object.entries(damages)) {
        damage(join(root, file));
        const { code, stdout, stderr } = await run(args);
        copy(file);
        expect({ code, stdout }, `${name}: ${stderr}`).to.deep.equal({ code: 1, stdout: "" });
        expect(stderr, name).to.match(/(?:^|\n)strongroom: [^\n]*install strongroom again(?:, then start again)?\n$/);
        expect(
          stderr.split("\n").filter((line) => !line.startsWith('{"time":')),
          stderr,
        ).to.have.lengthOf(2);
      }
    });
  }

  it("a command ends with one line when Node or the file that it runs is missing or empty", async () => {
    for (const file of ["bin/node", "bin/strongroom.cjs"]) {
      for (const isEmpty of [false, true]) {
        rmSync(join(root, file), { force: true });
        if (isEmpty) writeFileSync(join(root, file), "", { mode: 0o755 });
        const { code, stdout, stderr } = await run(["version"]);
        expect({ code, stdout }, stderr).to.deep.equal({ code: 1, stdout: "" });
        expect(stderr).to.equal(`strongroom: ${join(root, file)} is missing or damaged: install strongroom again\n`);
      }
      copy("bin");
      linkNode();
    }
  });

  it("a server with a damaged openapi.json serves, and refuses requests for it with the reason", async () => {
    writeFileSync(join(root, "dist/openapi.json"), "{");
    const server = await startProcess([], {}, { main: join(root, "dist/program/entry.cjs"), nodeFlags: [] });
    copy("dist/openapi.json");
    const response = await send(server, { path: "/v1/openapi.json" });
    mustRefuse(response, 503, "UNAVAILABLE");
    expect(response.json["error"]).to.equal(
      `${join(root, "dist/openapi.json")} is missing or damaged: install strongroom again`,
    );
  });

  it("an unexpected error names the changed files, or else shows where it came from", async () => {
    writeFileSync(join(root, "dist/program/get.cjs"), "throw new TypeError('canary')");
    const changed = await run(["get", "a"]);
    expect(changed.stderr).to.contain("missing or changed: dist/program/get.cjs;");
    rmSync(join(root, "dist/SHA256SUMS"));
    const unknown = await run(["get", "a"]);
    copy("dist/SHA256SUMS");
    copy("dist/program/get.cjs");
    expect(unknown).to.include({ code: 1, stdout: "" });
    expect(unknown.stderr)
      .to.match(/^strongroom: failed unexpectedly: TypeError\n +at /)
      .and.not.to.contain("canary");
  });
});
