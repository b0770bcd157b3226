/** Vector registers after a copy: V8 saves them in memory that it frees unwiped when it deoptimizes a function. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { scanProcess } from "../../tools/rig/scanner.js";

const [pieceBytes, unmask] = [16, 0x5a];
const secret = Buffer.from(Array.from({ length: 980 }, (_, i) => (i * i + 89 * i + (i >> 3)) & 255));

/** Copies the secret in an optimized function that another kind of object deoptimizes next, and wipes both copies. */
const script = `
  import { writeSync } from "node:fs";
  import { copySecret } from "./dist/workers/registers.js";
  const [masked, copies] = process.argv.slice(1);
  const [source, target] = [0, 1].map(() => new Uint8Array(new ArrayBuffer(masked.length / 2)));
  const copy = copies === "set" ? () => target.set(source) : () => copySecret(target, source);
  const act = (object) => { copy(); return object.x + 1; };
  for (let x = 0; x < 100; x++) act({ x });
  %OptimizeFunctionOnNextCall(act);
  act({ x: 1 });
  for (let i = 0; i < source.length; i++) source[i] = parseInt(masked.slice(2 * i, 2 * i + 2), 16) ^ ${unmask};
  act({ y: 1, x: 2.5 });
  source.fill(0);
  target.fill(0);
  writeSync(1, "ready");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); // nothing else may take what V8 has freed`;

describe("vector registers", () => {
  before(function () {
    needs(this, existsSync("/proc/self/mem"), "/proc/self/mem");
  });

  /** Returns how many pieces of the secret, or halves of one, are in the memory of a process that has copied it. */
  async function piecesLeftBy(copies: "set" | "copySecret"): Promise<number> {
    const masked = Buffer.from(secret.map((byte) => byte ^ unmask)).toString("hex");
    const args = ["--allow-natives-syntax", "--input-type=module", "-e", script, masked, copies];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], timeout: 60_000 });
    later(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const pieces = Array.from({ length: Math.floor(secret.length / pieceBytes) }, (_, i) =>
      secret.subarray(i * pieceBytes, (i + 1) * pieceBytes),
    );
    const found = scanProcess(child.pid ?? 0, new Map(pieces.map((piece, i) => [String(i), piece])));
    child.kill("SIGKILL");
    return [...found.values()].reduce((sum, { full, half }) => sum + full + half, 0);
  }

  it("a copy of secret bytes leaves no piece of them where a plain copy does", async function () {
    needs(this, (await piecesLeftBy("set")) > 0, "a processor that copies through registers that V8 saves");
    expect(await piecesLeftBy("copySecret")).to.equal(0);
  });
});
