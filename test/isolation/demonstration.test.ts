/** `npm run demo:isolation`: its flags, and that it leaves nothing behind when its reader ends early. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect } from "../../tools/rig/process.js";

const demonstration = fileURLToPath(new URL("../../tools/demo/isolation.js", import.meta.url));

/** In a process group of its own, by which its servers are found, and with a directory of its own for its files. */
function begin(...flags: readonly string[]) {
  const directory = temporaryDirectory();
  const child = spawn(process.execPath, [demonstration, ...flags], {
    detached: true,
    env: { ...process.env, TMPDIR: directory },
  });
  const output = collect(child);
  later(() => {
    if (isRunning(child.pid)) process.kill(-(child.pid ?? 0), "SIGKILL");
  });
  return { child, output, directory };
}

/** Whether any process of the group is left. */
function isRunning(group = 0): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}

describe("the demonstration of key isolation", () => {
  it("the demonstration refuses an unknown flag, and names the one that it has", async () => {
    const { child, output } = begin("--jsn");
    const { code, stdout, stderr } = await output.ended;
    expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
    expect(stderr).to.match(/^unknown argument "--jsn": the only flag is --json.*\n$/);
    expect(isRunning(child.pid)).to.equal(false);
  });

  it("the demonstration leaves no server and no file behind when its reader ends, as head does", async function () {
    needs(this, existsSync("/proc/self/mem"), "/proc/self/mem");
    this.timeout(0); // at a load of 25, a search of the whole memory takes minutes
    const { child, output, directory } = begin();
    while (!output.stdout().includes("holds")) await once(child.stdout, "data");
    child.stdout.destroy();
    const [code] = await once(child, "exit");
    expect(code).to.equal(1);
    while (isRunning(child.pid)) await new Promise((next) => setTimeout(next, 20));
    expect(readdirSync(directory)).to.deep.equal([]);
    expect(output.stderr()).to.equal("");
  });
});
