/** CONTRIBUTING, "one row an endpoint": the table is whole, and agrees with the contract. */
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { type Endpoint, endpoint, json, none } from "../../src/http/endpoint.js";
import { endpoints } from "../../src/http/endpoints.js";
import { EndpointTable } from "../../src/http/routes.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { contract } from "../../tools/rig/contract-judge.js";

type Documented = Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;

/** A whole row, as the text of each member. */
const whole = {
  operation: '"put"',
  at: '"PUT /v1/secrets/:path"',
  scope: '"put"',
  guard: '"unlocked"',
  audit: "null",
  subject: "secret",
  body: "value",
  conditional: '"change"',
  reads: "false",
  handle:
    "async ({ vault, path, body, condition, permit }) => tagged(await vault.secrets.put(path, body, condition, permit))",
};
type Member = keyof typeof whole;

/** Returns what the compiler says of each row, a line each. */
async function compileErrors(rows: readonly Partial<Record<Member, string>>[]): Promise<readonly string[]> {
  const directory = temporaryDirectory();
  symlinkSync(resolve("node_modules"), join(directory, "node_modules"));
  const from = (file: string) => JSON.stringify(resolve(`dist/src/http/${file}.js`));
  const texts = rows.map((row) => {
    const members = Object.entries(row).map(([name, text]) => `${name}: ${text}`);
    return `endpoint({ ${members.join(", ")} });`;
  });
  const imports = `import { endpoint, key, none, secret } from ${from("endpoint")}; import { value } from ${from("body")};`;
  const code = [`${imports} import { json, tagged } from ${from("outcome")};`, ...texts];
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  writeFileSync(join(directory, "rows.ts"), code.join("\n"));
  const options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--target", "es2023"];
  const tsc = promisify(execFile)(resolve("node_modules/.bin/tsc"), [...options, "--types", "node", "rows.ts"], {
    cwd: directory,
  });
  const output = await tsc.then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  return rows.map((_, i) => new RegExp(`^rows\\.ts\\(${i + 2},.*(?:\n .*)*`, "m").exec(output)?.[0] ?? "");
}

describe("the table", () => {
  it("the table of endpoints has each operation of the contract under its id, and no other", () => {
    const documented = Object.entries(contract["paths"] as Documented).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => {
        return `${operationId} ${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`;
      }),
    );
    const served = endpoints.map(
      ({ operation, at }) => `${operation} ${at.replace(/\/?(?:\?.*)?$/, "").replace("tokens/root", "tokens/:name")}`,
    );
    expect([...new Set(served)].sort()).to.deep.equal(documented.sort());
  });

  it("a row that lacks a member, or whose handler uses what it does not declare, does not compile", async () => {
    const members = Object.keys(whole) as Member[];
    const lacking = members.map((member) => ({ ...whole, [member]: undefined }));
    const kept = lacking.map((row) => Object.fromEntries(Object.entries(row).filter(([, text]) => text !== undefined)));
    const rows = [
      whole,
      { ...whole, subject: "none" },
      { ...whole, subject: "key" },
      { ...whole, body: "null" },
      { ...whole, conditional: "false" },
      { ...whole, conditional: '"read"' },
      { ...whole, scope: '"open"', handle: "({ caller }) => json({ caller })" },
      { ...whole, handle: "({ query }) => json({ query })" },
      { ...whole, handle: "({ req }) => json({ req })" },
      { ...whole, handle: "({ res }) => json({ res })" },
      { ...whole, handle: "() => {}" },
    ];
    const [none, ...errors] = await compileErrors([...rows, ...kept]);
    expect(none).to.equal("");
    for (const [i, name] of [
      "path",
      "path",
      "body",
      "condition",
      "condition",
      "caller",
      "query",
      "req",
      "res",
    ].entries())
      expect(errors[i]).to.match(new RegExp(`Property '${name}' does not exist`));
    expect(errors[9]).to.match(/not assignable to type .*Outcome/);
    for (const [i, member] of members.entries())
      expect(errors[i + 10]).to.match(new RegExp(`Property '${member}' is missing|Expected`));
  });

  const row = (at: Endpoint["at"]): Endpoint =>
    endpoint({
      ...{ operation: "status", at, scope: "root", guard: "none", audit: null, subject: none, body: null },
      ...{ conditional: false, reads: false, handle: () => json({}) },
    });
  const table = new EndpointTable(
    (
      ["GET /v1/a", "GET /v1/a/:n", "GET /v1/a/:n?v", "POST /v1/a/:n/act", "PUT /v1/a/:n", "PUT /v1/a/own"] as const
    ).map(row),
  );
  const found: readonly (readonly [
    method: string,
    path: string,
    query: string,
    row: string | null,
    parameter: string,
  ])[] = [
    ["GET", "/v1/a", "", "GET /v1/a", ""],
    ["GET", "/v1/a/x/y", "", "GET /v1/a/:n", "x/y"],
    ["GET", "/v1/a/x", "w=1&v=2", "GET /v1/a/:n?v", "x"],
    ["POST", "/v1/a/x/y/act", "", "POST /v1/a/:n/act", "x/y"],
    ["GET", "/v1/a/x/act", "", "GET /v1/a/:n", "x/act"],
    ["PUT", "/v1/a/own", "", "PUT /v1/a/own", ""],
    ["GET", "/v1/a/own", "", "GET /v1/a/:n", "own"],
    ["DELETE", "/v1/a/x", "", null, "x"],
    ["GET", "/v1/b/x", "", null, ""],
    ["GET", "/v1/a/act", "", "GET /v1/a/:n", "act"],
    ["POST", "/v1/a/act", "", null, "act"],
  ];
  for (const [method, path, query, at, parameter] of found)
    it(`${method} ${path}${query && `?${query}`} gets ${at ?? "no row"}`, () => {
      const result = table.find(method, { path, query, authority: null });
      expect([result?.endpoint?.at ?? null, result?.parameter ?? ""]).to.deep.equal([at, parameter]);
    });

  it("names the methods of a path, with HEAD where GET is", () => {
    expect(table.allowedMethods("/v1/a/own")).to.deep.equal(["PUT", "GET", "HEAD"]);
    expect(table.allowedMethods("/v1/b")).to.deep.equal([]);
  });
});
