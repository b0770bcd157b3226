import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";

const compiled = fileURLToPath(new URL("../../tools/rig/code-cache.cjs", import.meta.url));

describe("the code cache of the tests' processes", () => {
  it("keeps each file of the program once, and compiles it again once the file has changed", () => {
    const root = temporaryDirectory();
    const cache = join(root, "tools/rig/code-cache.cjs");
    const program = join(root, "program/main.cjs");
    const kept = join(root, "code-cache", process.version);
    for (const folder of ["tools/rig", "program"]) mkdirSync(join(root, folder), { recursive: true });
    copyFileSync(compiled, cache);
    const run = () => execFileSync(process.execPath, ["--require", cache, program], { env: {}, encoding: "utf8" });

    writeFileSync(program, 'console.log("one", require.main === module)');
    expect(run()).to.equal("one true\n");
    const first = statSync(join(kept, "main.cjs")).ino;
    expect(run()).to.equal("one true\n");
    expect(statSync(join(kept, "main.cjs")).ino).to.equal(first);

    writeFileSync(program, 'console.log("two", require.main === module)'); // as long as before
    utimesSync(program, 1, 1);
    expect(run()).to.equal("two true\n");
    expect(run()).to.equal("two true\n");
    expect(readdirSync(kept)).to.deep.equal(["main.cjs"]);
  });
});
