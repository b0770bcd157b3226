/** The published package: complete without repository and development dependencies, and free of tests. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { extract, list } from "tar";
import { temporaryDirectory } from "../support/clean-up.js";
import { environment, startProcess } from "../support/process.js";
import { mustInit, mustPut } from "../support/test-client.js";
import { writeShare } from "./share-files.js";

type Manifest = {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
};

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const execute = promisify(execFile);

async function pack(): Promise<string> {
  const directory = temporaryDirectory();
  const args = ["pack", "--ignore-scripts", "--silent", "--pack-destination", directory];
  const { stdout } = await execute("npm", args, { env: environment({}) });
  return join(directory, stdout.trim());
}

/** Installs the package and its dependencies as npm would; returns the directory. */
async function install(file: string): Promise<string> {
  const directory = temporaryDirectory();
  const modules = join(directory, "node_modules");
  mkdirSync(join(modules, "strongroom"), { recursive: true });
  await extract({ file, cwd: join(modules, "strongroom"), strip: 1 });
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(resolve("node_modules", name), join(modules, name));
  }
  return directory;
}

describe("the package", () => {
  before(() => writeShare("dist/share"));

  it("contains program, types and documents, and neither tests nor sources", async () => {
    const files: string[] = [];
    await list({ file: await pack(), onReadEntry: ({ path }) => void files.push(path.replace("package/", "")) });
    expect(files).to.include.members(["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "openapi.json"]);
    expect(files).to.include.members(["dist/src/client/client.js", "dist/src/client/client.d.ts"]);
    const completions = ["strongroom.bash", "_strongroom", "strongroom.fish"].map((name) => `completions/${name}`);
    expect(files).to.include.members(["man/strongroom.1", ...completions].map((name) => `dist/share/${name}`));
    expect(files.filter((path) => /test|\.map$|(?<!\.d)\.c?ts$/.test(path))).to.deep.equal([]);
  });

  it("names in NOTICE the packages that are part of the program", () => {
    const program = readdirSync("dist/program").map((name) => readFileSync(join("dist/program", name), "utf8"));
    const contained = [...program.join("\n").matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm)];
    const named = /:\n(.*)\.\n/.exec(readFileSync("NOTICE", "utf8"))?.[1]?.split(", ");
    expect([...new Set(contained.map(([, name]) => name))].sort()).to.deep.equal(named);
  });

  it("works in an empty directory: the command serves and prints its version, the client library reads", async () => {
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
