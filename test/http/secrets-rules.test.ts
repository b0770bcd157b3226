/** docs/reference/http-api.md, Secrets: paths, list, concurrency. Invalid input is in bad-input.test.ts. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";

describe("secret paths", () => {
  const server = shareTestServer({}, mustInit);
  const longest = [...Array(4).fill("a".repeat(248)), "b".repeat(1024 - 4 * 249)].join("/");

  const rules: readonly (readonly [string, string, string])[] = [
    ["literal slashes separate segments", "a/b/c", "a/b/c"],
    ["%2F counts as a separator", "a%2Fb%2fc", "a/b/c"],
    ["+ in a path is literal", "a+b", "a+b"],
    ["%2B in a path is a plus", "a%2Bb", "a+b"],
    ["a path is decoded exactly once", "a%252Fb", "a%2Fb"],
    ["a space inside a segment is kept", "a%20b", "a b"],
    ["the canonical form of a path is NFC", "caf%65%CC%81", "café"],
    ["the case of a path is kept", "A/a", "A/a"],
    ["dots inside a segment are kept", "a.b/..c/d..", "a.b/..c/d.."],
    ["characters of a path outside the BMP are kept", "%F0%9F%98%80", "😀"],
    ["segments with a meaning to file systems are kept", "CON/nul.txt/x.sealed", "CON/nul.txt/x.sealed"],
    ["a path of 1024 bytes is allowed", longest, longest],
    ["a path of 32 segments is allowed", Array(32).fill("s").join("/"), Array(32).fill("s").join("/")],
    ["the name of an endpoint is a valid path", "init/status", "init/status"],
  ];
  for (const [name, target, path] of rules) {
    it(name, async () => {
      const put = await send(server(), { method: "PUT", path: `/v1/secrets/${target}`, body: { value: name } });
      expect(mustSucceed(put)["path"]).to.equal(path);
      expect(mustSucceed(await send(server(), { path: `/v1/secrets/${target}` }))).to.include({ path, value: name });
      expect((await mustList(server(), `?prefix=${encodeURIComponent(path)}`)).map((e) => e.path)).to.include(path);
    });
  }

  it("encodeURIComponent(path) and literal slashes mean the same secret", async () => {
    await mustPut(server(), "same/secret", "v");
    expect(mustSucceed(await send(server(), { path: "/v1/secrets/same/secret" }))["value"]).to.equal("v");
  });

  it("a path in NFD is the same secret as in NFC", async () => {
    await mustPut(server(), "ein/Fluß/é".normalize("NFC"), "v");
    expect((await mustGet(server(), "ein/Fluß/é".normalize("NFD")))["value"]).to.equal("v");
  });

  it("paths that differ only in case are different secrets", async () => {
    for (const path of ["Case", "case", "CASE", "case/Case"]) await mustPut(server(), path, path);
    for (const path of ["Case", "case", "CASE", "case/Case"]) {
      expect((await mustGet(server(), path))["value"]).to.equal(path);
    }
  });

  it("secrets at a and a/b exist side by side", async () => {
    for (const path of ["side", "side/by", "side/by/side"]) await mustPut(server(), path, path);
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/side/by" }));
    expect((await mustGet(server(), "side"))["value"]).to.equal("side");
    expect((await mustGet(server(), "side/by/side"))["value"]).to.equal("side/by/side");
  });

  it("the directory tree mirrors the paths of secrets and stays readable", async () => {
    await mustPut(server(), "prod/db/password", "v");
    const file = join(server().home, "vault", "gen-1", "secrets", "prod", "db", "password.sealed");
    expect(existsSync(file)).to.equal(true);
  });

  it("a delete removes empty parent directories, and no others", async () => {
    await mustPut(server(), "prune/x/y/z", "v");
    await mustPut(server(), "prune/w", "v");
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/prune/x/y/z" }));
    const secrets = join(server().home, "vault", "gen-1", "secrets");
    expect(readdirSync(join(secrets, "prune"))).to.deep.equal(["w.sealed"]);
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/prune/w" }));
    expect(readdirSync(secrets)).not.to.include("prune");
  });
});

describe("lists", () => {
  const paths = ["a", "a/b", "a/b/c", "ab", "b", "zé", "z\u{e000}", "z\u{10000}", "A", "a+b", "a b"];
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    for (const path of paths) await mustPut(fresh, path, "v");
  });
  const sorted = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const listed = async (query: string) => (await mustList(server(), query)).map(({ path }) => path);

  it("a list without a prefix returns all paths, ascending by their UTF-8 bytes", async () => {
    expect(await listed("")).to.deep.equal(sorted);
  });

  it("a list with an empty prefix returns all paths", async () => {
    for (const query of ["?prefix=", "?prefix", "?", "?other=1&other=2"]) {
      expect(await listed(query), query).to.deep.equal(sorted);
    }
  });

  it("GET /v1/secrets/ is also the list", async () => {
    const { entries } = mustSucceed(await send(server(), { path: "/v1/secrets/?prefix=a/" }));
    expect(entries).to.have.lengthOf(2);
  });

  const prefixes: readonly (readonly [string, string])[] = [
    ["a", "a"],
    ["a/", "a/"],
    ["a/b", "a/b"],
    ["a%2Fb", "a/b"],
    ["z", "z"],
    ["z%C3%A9", "zé"],
    ["a+", "a+"],
    ["a%20", "a "],
    ["nothing", "nothing"],
    ["/", "/"],
    ["..", ".."],
  ];
  for (const [query, prefix] of prefixes) {
    it(`a list with prefix=${query} returns the paths that start with ${JSON.stringify(prefix)}, decoded once`, async () => {
      expect(await listed(`?prefix=${query}`)).to.deep.equal(sorted.filter((path) => path.startsWith(prefix)));
    });
  }

  it("a list without a match returns 200 with an empty array", async () => {
    expect(mustSucceed(await send(server(), { path: "/v1/secrets?prefix=nope" }))).to.deep.equal({ entries: [] });
  });

  for (const limit of [1, 2, 3, 10, 11, 1000]) {
    it(`a list with limit=${limit}, next and after returns every path once`, async () => {
      const seen: string[] = [];
      for (let after = ""; ; ) {
        const path = `/v1/secrets?limit=${limit}&after=${encodeURIComponent(after)}`;
        const { entries, next } = mustSucceed(await send(server(), { path }));
        const page = (entries as { path: string }[]).map((entry) => entry.path);
        expect(page.length).to.be.at.most(limit);
        seen.push(...page);
        if (next === undefined) break;
        expect(next).to.equal(page.at(-1));
        after = String(next);
      }
      expect(seen).to.deep.equal(sorted);
    });
  }

  it("a list accepts a missing path in after, and combines prefix, limit and after", async () => {
    expect(await listed("?after=a/a")).to.deep.equal(sorted.filter((path) => path > "a/a" || path.startsWith("z")));
    expect(await listed("?prefix=a&limit=2&after=a")).to.deep.equal(["a b", "a+b"]);
    const { next } = mustSucceed(await send(server(), { path: "/v1/secrets?prefix=a/&limit=2" }));
    expect(next).to.equal(undefined);
  });

  const malformed = [
    "prefix=a&prefix=b",
    "prefix=%zz",
    "prefix=%ED%A0%80",
    "limit=0",
    "limit=1001",
    "limit=-1",
    "limit=1.5",
  ];
  for (const query of [
    ...malformed,
    "limit=",
    "limit=x",
    "limit=1&limit=1",
    "after=%",
    "after=a&after=a",
    "%70refix=a&prefix=b",
  ]) {
    it(`a list with ?${query} returns 400 BAD_REQUEST`, async () => {
      mustRefuse(await send(server(), { path: `/v1/secrets?${query}` }), 400, "BAD_REQUEST");
    });
  }
});

describe("concurrency", () => {
  it("writes to one path are serialized, and a reader sees the whole old or the whole new secret", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const body = (n: number) => ({ value: String(n).repeat(5_000), description: String(n) });
    await mustPut(server, "hot", body(0));
    const writers = Array.from({ length: 30 }, (_, n) => mustPut(server, "hot", body(n)));
    const readers = Array.from({ length: 60 }, () => mustGet(server, "hot"));
    for (const { value, metadata } of await Promise.all(readers)) {
      const { description } = metadata as { description: string };
      expect(value).to.equal(description.repeat(5_000));
    }
    await Promise.all(writers);
    expect((await mustList(server)).length).to.equal(1);
  });

  it("concurrent puts and deletes in shared directories succeed", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const client = async (n: number) => {
      for (let i = 0; i < 15; i++) {
        await mustPut(server, `shared/deep/er/${n}`, "v");
        mustSucceed(await send(server, { method: "DELETE", path: `/v1/secrets/shared/deep/er/${n}` }));
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => client(n)));
    expect(await mustList(server)).to.deep.equal([]);
    expect(readdirSync(join(server.home, "vault", "gen-1", "secrets"))).to.deep.equal([]);
  });
});
