/** Lists of a client token: any list and page equals one of all paths, filtered by hand. */
import { expect } from "chai";
import { includesPath, scopeRanges } from "../../src/paths/path-scope.js";
import { compareUtf8, isSecretPath } from "../../src/paths/secret-path.js";
import { NameIndex } from "../../src/storage/files/name-index.js";
import { listNames } from "../../src/vault/list.js";
import { Random } from "../support/random.js";

const lists = Number(process.env["STRONGROOM_TOKEN_LISTS"] ?? 5_000);

/** Characters around the slash in UTF-8, and where JavaScript's order of text differs from that of its bytes. */
const segments = ["a", "a!", "a.", "ab", "b", "é", "\u{ffee}", "\u{1f600}"];

type Vault = { readonly paths: readonly string[]; readonly list: Parameters<typeof listNames>[0] };

function randomPath(random: Random): string {
  return Array.from({ length: 1 + random.below(3) }, () => segments[random.below(segments.length)]).join("/");
}

function randomVault(random: Random): Vault {
  const paths = [...new Set(Array.from({ length: random.below(60) }, () => randomPath(random)))].filter(isSecretPath);
  const index = new NameIndex(paths);
  const list = async (prefix: string, after: string, limit: number) => index.list(prefix, after, limit);
  return { paths: paths.sort(compareUtf8), list };
}

function randomScopes(random: Random): string[] {
  return Array.from({ length: random.below(6) }, () => randomPath(random) + (random.below(2) === 0 ? "/" : ""));
}

/** The rule, word for word: a text with a slash at its end is that subtree, any other is that secret. */
function isAllowed(scopes: readonly string[], path: string): boolean {
  if (scopes.length === 0) return true;
  return scopes.some((scope) => (scope.endsWith("/") ? path.startsWith(scope) : path === scope));
}

/** A path, its beginning, or nothing. */
function randomBound(random: Random): string {
  const path = randomPath(random);
  return path.slice(0, random.below(path.length + 1));
}

describe("lists for a client token with paths", () => {
  it(`a token's list equals a filter by hand, in ${lists} random lists and pages`, async () => {
    const random = new Random(7);
    for (let i = 0; i < lists; i += 10) {
      const { paths, list } = randomVault(random);
      const scopes = randomScopes(random);
      const within = scopeRanges(scopes);
      const allowed = paths.filter((path) => isAllowed(scopes, path));
      expect(paths.filter((path) => includesPath(within, path))).to.deep.equal(allowed);
      for (let j = 0; j < 10; j++) {
        const [prefix, after, limit] = [randomBound(random), randomBound(random), 1 + random.below(12)];
        const rest = allowed.filter(
          (path) => path.startsWith(prefix) && (after === "" || compareUtf8(path, after) > 0),
        );
        const found = await listNames(list, { prefix, after, within }, limit);
        const shown = JSON.stringify({ paths, scopes, prefix, after, limit });
        expect(found, shown).to.deep.equal(rest.slice(0, limit));
      }
    }
  });

  it("a token's list asks the store for nothing outside of the token's paths", async () => {
    const asked: string[] = [];
    const list = async (prefix: string) => {
      asked.push(prefix);
      return [];
    };
    const within = scopeRanges(["app/", "app/db/", "app/db", "web/key", "app"]);
    await listNames(list, { prefix: "", after: "", within }, 10);
    expect(asked).to.deep.equal(["app", "app/", "web/key"]);
  });
});
