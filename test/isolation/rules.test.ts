/** Rules of the key worker's source that types cannot express. */
import { readdirSync, readFileSync } from "node:fs";
import { expect } from "chai";

const makers: readonly (readonly [string, RegExp])[] = [
  ["Buffer, which is pooled or on V8's heap", /\bBuffer\b(?!\))/],
  ["new Uint8Array, ArrayBuffer or DataView", /new (?:Uint8Array|ArrayBuffer|DataView|SharedArrayBuffer)\b/],
  ["Uint8Array.of or .from, which is on V8's heap", /Uint8Array\.(?:of|from)/],
  ["a decoder that makes strings", /TextDecoder|StringDecoder/],
  ["hkdf or WebCrypto, which keep hidden copies", /hkdf|subtle|webcrypto|createSecretKey/],
  ["decipher of data, whose results Node frees unwiped", /createDecipheriv\((?!"aes-256-cfb")/],
  ["a console or a debugger", /console\.|inspector/],
];

/** OpenSSL's copy of an asymmetric key lasts until garbage collection or the end of the thread, with KeyObject or without. */
const keyObjects = /KeyObject|createPrivateKey|\b(?:createSign|sign as)\b/;

/** Both run in the key worker, whose thread ends with a lock. An app of GitHub has its key parsed for one signature and no longer. */
const holders = /^(?:transit\/|uses\/github-app\.ts$)/;

describe("the key worker's source", () => {
  const files = readdirSync("workers", { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && !["memory.ts", "registers.ts"].includes(name),
  );
  for (const [name, pattern] of makers) {
    it(`the key worker has no ${name}`, () => {
      expect(files.filter((file) => pattern.test(withoutComments(file)))).to.deep.equal([]);
    });
  }

  it("the key worker holds asymmetric keys only for transit keys and GitHub apps, whose thread ends with a lock", () => {
    const holding = files.filter((file) => keyObjects.test(withoutComments(file)));
    expect(holding.filter((file) => !holders.test(file))).to.deep.equal([]);
  });

  it("memory.ts makes every buffer from an explicit ArrayBuffer", () => {
    const code = withoutComments("memory.ts");
    for (const [made] of code.matchAll(/new Uint8Array\([^)]*/g))
      expect(made).to.match(/new ArrayBuffer\(|buffer\.buffer/);
    expect(code).not.to.match(/Buffer\.(?:alloc|allocUnsafe|concat)\b/);
  });
});

function withoutComments(file: string): string {
  return readFileSync(`workers/${file}`, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
}
