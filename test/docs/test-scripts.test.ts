/** `npm test` and `npm run test:quick` as CONTRIBUTING describes them: which files each runs, and how many at a time. */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "chai";

type Config = { readonly spec: readonly string[]; readonly ignore?: readonly string[]; readonly jobs: number };

const require = createRequire(`${process.cwd()}/`);
const whole = require("./.mocharc.json") as Config;
const quick = require("./.mocharc.quick.cjs") as Config;
const files = readdirSync("test", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.ts"));

/** The rooms that a pattern like `dist/test/{a,b}/**` names, or with `!(a|b)` leaves out. */
function roomsIn(pattern = ""): readonly string[] {
  return /[{(](.*?)[)}]/.exec(pattern)?.[1]?.split(/[,|]/) ?? [];
}

describe("npm test", () => {
  it("runs every file once: the rooms with the longest first, then all others", () => {
    const [first, others, ...rest] = whole.spec;
    expect(roomsIn(first)).to.deep.equal(roomsIn(others));
    expect([first, others]).to.deep.equal([
      `dist/test/{${roomsIn(first).join()}}/**/*.test.js`,
      `dist/test/!(${roomsIn(first).join("|")})/**/*.test.js`,
    ]);
    expect([rest, whole.ignore]).to.deep.equal([["dist/test/*.test.js"], undefined]);
  });

  it("runs as many files at a time as CONTRIBUTING says", () => {
    const words = ["one file", "two files", "three files", "four files"];
    expect(readFileSync("CONTRIBUTING.md", "utf8")).to.contain(`${words[whole.jobs - 1]} at a time`);
  });
});

describe("npm run test:quick", () => {
  it("differs from npm test only in its files", () => {
    expect({ ...quick, spec: null, ignore: null }).to.deep.equal({ ...whole, spec: null, ignore: null });
    expect(quick.spec).to.deep.equal([`dist/test/{${roomsIn(quick.spec[0]).join()}}/**/*.test.js`]);
    expect(quick.ignore).to.deep.equal(["**/*.{process,slow}.test.js"]);
  });

  it("runs no file that starts a process", () => {
    const rooms = roomsIn(quick.spec[0]);
    const its = files.filter((name) => rooms.includes(name.split("/")[0] ?? "") && !/\.(process|slow)\./.test(name));
    expect(its).to.have.length.above(35);
    const starts =
      /(?<!\.)\b(?:spawn|fork|exec|execFile|startProcess)\(|support\/(?:process|pseudo-terminal|strace)\.js/;
    expect(its.filter((name) => starts.test(readFileSync(`test/${name}`, "utf8")))).to.deep.equal([]);
  });
});
