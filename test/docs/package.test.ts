/** The published package: complete without repository and development dependencies, and free of tests. */

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { extract, list } from "tar";
import { bundledPackages } from "../../packaging/bundled-packages.js";
import { stagePackage } from "../../packaging/packed-manifest.js";
import { linksIn } from "../../tools/docs/document-files.js";
import { writeShare } from "../../tools/docs/share-files.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { environment, startProcess } from "../../tools/rig/process.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";

type Manifest = {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
};

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const execute = promisify(execFile);

async function pack(): Promise<string> {
  const directory = temporaryDirectory();
  const staged = join(directory, "staged");
  stagePackage(staged);
  const args = ["pack", "--ignore-scripts", "--silent", "--pack-destination", directory, staged];
  const { stdout } = await execute("npm", args, { env: environment({}) });
  return join(directory, stdout.trim());
}

/** Installs the package as npm would: nothing else comes with it. Returns the directory. */
async function install(file: string): Promise<string> {
  const directory = temporaryDirectory();
  const modules = join(directory, "node_modules");
  mkdirSync(join(modules, "strongroom"), { recursive: true });
  await extract({ file, cwd: join(modules, "strongroom"), strip: 1 });
  return directory;
}

describe("the npm package", () => {
  before(() => writeShare("dist/share"));

  it("the package contains program, types and documents, and neither tests nor sources", async () => {
    const files: string[] = [];
    await list({ file: await pack(), onReadEntry: ({ path }) => void files.push(path.replace("package/", "")) });
    expect(files).to.include.members(["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "dist/openapi.json"]);
    expect(files).to.include.members(["dist/src/client/client.js", "dist/src/client/client.d.ts"]);
    const completions = ["strongroom.bash", "_strongroom", "strongroom.fish"].map((name) => `completions/${name}`);
    expect(files).to.include.members(["man/strongroom.1", ...completions].map((name) => `dist/share/${name}`));
    expect(files.filter((path) => /test|\.map$|(?<!\.d)\.c?ts$/.test(path))).to.deep.equal([]);
  });

  it("every link in the package's documents leads somewhere once it is installed", async () => {
    const place = join(await install(await pack()), "node_modules", "strongroom");
    const names = readdirSync(place, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
    expect(names).to.include.members(["README.md", "docs/from-dotenv.md"]);
    const links = names.flatMap((name) => linksIn(name, readFileSync(join(place, name), "utf8")));
    expect(links.map(({ path }) => path).filter((path) => !existsSync(join(place, path)))).to.deep.equal([]);
  });

  it("the package needs no other package and runs no script when it is installed", () => {
    const staged = temporaryDirectory();
    stagePackage(staged);
    for (const file of [join(staged, "package.json"), "packages/client/package.json"]) {
      const { scripts = {}, ...fields } = JSON.parse(readFileSync(file, "utf8"));
      expect(fields).not.to.have.any.keys("dependencies", "optionalDependencies", "peerDependencies");
      expect(scripts).not.to.have.any.keys("preinstall", "install", "postinstall");
    }
  });

  it("NOTICE contains the licence of each package that is part of the program", () => {
    const notice = readFileSync("dist/NOTICE", "utf8");
    for (const { name, version } of bundledPackages()) expect(notice).to.contain(`${name} ${version}`);
  });

  it("the bill of materials lists version, licence and checksum of each package in the program", () => {
    const { components, dependencies } = JSON.parse(readFileSync("dist/share/sbom.cdx.json", "utf8"));
    const packages = bundledPackages();
    expect(packages).to.have.lengthOf.above(50);
    const purls = packages.map(({ name, version }) => `pkg:npm/${name.replace("@", "%40")}@${version}`);
    expect(components.map((one: { purl: string }) => one.purl)).to.deep.equal(purls);
    expect(dependencies[0].dependsOn).to.deep.equal(purls);
    for (const { hashes, licenses } of components) {
      expect(hashes[0].content).to.match(/^[0-9a-f]{128}$/);
      expect(licenses).to.have.lengthOf(1);
    }
  });

  it("an installed package works: its command serves and prints its version, its client library reads", async () => {
    const directory = await install(await pack());
    const main = join(directory, "node_modules", "strongroom", manifest.bin["strongroom"] ?? "");
    expect(readFileSync(main, "utf8")).to.match(/^#!\/bin\/sh\n/);
    const told = await execute(process.execPath, [main, "version"], { cwd: directory, env: environment({}) });
    expect(told.stdout).to.equal(`${manifest.version}\n`);
    const server = await startProcess([], {}, { main, nodeFlags: [] });
    await mustInit(server);
    await mustPut(server, "a/b", "from the package");
    writeFileSync(
      join(directory, "read.mjs"),
      `import { StrongroomClient } from "strongroom/client";
       const client = new StrongroomClient();
       console.log((await client.get("a/b")).reveal());
       await client.close();`,
    );
    const env = environment({ STRONGROOM_HOME: server.home });
    const read = await execute(process.execPath, ["read.mjs"], { cwd: directory, env });
    expect(read.stdout).to.equal("from the package\n");
  });
});
