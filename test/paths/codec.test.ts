/** The path codec: file names never collide, never leave the tree, and decode to their path. */
import { isAbsolute, join, normalize } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { directoryName, secretFileName, segmentOfDirectory, segmentOfFile } from "../../src/paths/file-name.js";
import { compareUtf8, isSecretPath } from "../../src/paths/secret-path.js";
import { codePoint } from "../support/code-points.js";

/** Characters that file systems fold, drop or treat specially. */
const nasty = fc.constantFrom(
  ..."aAbBzZ09._-%~ :+#$'\"*?<>|",
  ...["é", "É", "e\u0301", "ß", "ẞ", "ss", "ſ", "K", "k", "K", "İ", "ı", "i", "Å", "Å", "ﬁ", "Σ", "ς", "σ"],
  ...["con", "CON", "nul", "aux", "com1", "lpt9", ".sealed", "sealed", ".tmp-", "%41", "%2f", "..", "😀", "\u{1e900}"],
);
const segment = fc.oneof(
  fc.array(nasty, { minLength: 1, maxLength: 6 }).map((parts) => parts.join("")),
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.string({ unit: codePoint, minLength: 1, maxLength: 8 }),
);
const secretPath = fc
  .array(segment, { minLength: 1, maxLength: 4 })
  .map((segments) => segments.join("/").normalize("NFC"))
  .filter(isSecretPath);

/** Short in the normal suite; 100,000 in the long form. */
const pairs = Number(process.env["STRONGROOM_PATH_PAIRS"] ?? 3_000);

/** Similar paths: random pairs alone would hardly ever come close to a collision. */
const pairOfPaths = fc.oneof(
  fc.tuple(secretPath, secretPath),
  secretPath.chain((path) =>
    fc
      .constantFrom(
        path.toUpperCase(),
        path.toLowerCase(),
        `${path}.sealed`,
        `${path}.`,
        path.replace("/", "%2f"),
        `${path}/x`,
      )
      .map((other): [string, string] => [path, other.normalize("NFC")]),
  ),
);

function encodedFile(path: string): string {
  const segments = path.split("/");
  return [...segments.slice(0, -1).map(directoryName), secretFileName(segments.at(-1) ?? "")].join("/");
}

function problemOfName(name: string): string | null {
  if (!/^[a-z0-9_%-][a-z0-9._%-]*[a-z0-9_%-]$|^[a-z0-9_%-]$/.test(name)) return "has a special character";
  if (/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/.test(name)) return "is a device on Windows";
  return Buffer.byteLength(name) > 255 ? "is too long" : null;
}

/** Every name of the path on disk: its directories and its file. */
function encodedNames(path: string): string[] {
  const parts = encodedFile(path).split("/");
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

const foldings: readonly (readonly [string, (name: string) => string])[] = [
  ["as they are", (name) => name],
  ["after case folding", (name) => name.toUpperCase().toLowerCase()],
  ["after NFC", (name) => name.normalize("NFC")],
  ["after NFD", (name) => name.normalize("NFD")],
  ["after NFKC and case folding", (name) => name.normalize("NFKC").toUpperCase().toLowerCase()],
];

describe("the path codec", () => {
  it(`the codec is injective over ${pairs} random pairs, also after case folding and NFC or NFD`, function () {
    this.timeout(300_000);
    fc.assert(
      fc.property(pairOfPaths, ([a, b]) => {
        fc.pre(a !== b && isSecretPath(b));
        const [fileOfA, fileOfB] = [encodedFile(a), encodedFile(b)];
        const directoriesOfA = encodedNames(a).slice(0, -1);
        for (const [name, fold] of foldings) {
          const other = fold(fileOfB);
          if (fold(fileOfA) === other) throw new Error(`same file ${name}`);
          if (directoriesOfA.some((directory) => fold(directory) === other)) {
            throw new Error(`a directory of one is the file of the other ${name}`);
          }
        }
      }),
      { numRuns: pairs },
    );
  });

  it("the codec returns lower-case ASCII names that no file system treats specially, never outside the tree", () => {
    fc.assert(
      fc.property(secretPath, (path) => {
        const file = encodedFile(path);
        if (isAbsolute(file) || normalize(join("/tree", file)) !== `/tree/${file}`) throw new Error("leaves the tree");
        for (const name of file.split("/")) {
          const problem = problemOfName(name);
          if (problem !== null) throw new Error(`${name} ${problem}`);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it("the codec decodes every name to its segment, and rejects all other names", () => {
    fc.assert(
      fc.property(secretPath, fc.string(), (path, stranger) => {
        const last = path.split("/").at(-1) ?? "";
        expect(segmentOfFile(secretFileName(last))).to.equal(last);
        expect(segmentOfDirectory(directoryName(last))).to.equal(last);
        const back = segmentOfDirectory(stranger);
        if (back !== null) expect(directoryName(back)).to.equal(stranger);
      }),
      { numRuns: 5_000 },
    );
  });

  it("the codec rejects a name with an escaped slash, which would stand for a secret with another file", () => {
    expect([segmentOfDirectory("a%2fb"), segmentOfFile("a%2fb.sealed")]).to.deep.equal([null, null]);
  });

  for (const [path, file] of [
    ["app/db/password", "app/db/password.sealed"],
    ["A", "%41.sealed"],
    ["café", "caf%c3%a9.sealed"],
    ["a b", "a%20b.sealed"],
    [".hidden", "%2ehidden.sealed"],
    ["end.", "end%2e.sealed"],
    ["x.sealed/y", "x%2esealed/y.sealed"],
    ["nul.txt", "%6eul.txt.sealed"],
    ["100%", "100%25.sealed"],
  ] as const) {
    it(`the codec encodes ${path} as ${file}`, () => expect(encodedFile(path)).to.equal(file));
  }
});

describe("the order of paths", () => {
  it("paths sort by their UTF-8 bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), fc.string({ unit: codePoint }), (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 5_000 },
    );
  });
});
