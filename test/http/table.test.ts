/** CONTRIBUTING, "one row an endpoint": the table is whole, and agrees with the contract. */
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { type Endpoint, EndpointTable } from "../../src/http/endpoint.js";
import { endpoints } from "../../src/http/endpoints.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { contract } from "../support/contract-judge.js";

type Documented = Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;

const whole = {
  operation: "lock",
  at: "POST /v1/lock",
  scope: "lock",
  guard: "none",
  audit: null,
};

/** Returns what the compiler says of a row for each member, without that member. */
async function errorsWithout(members: readonly string[]): Promise<readonly string[]> {
  const directory = temporaryDirectory();
  symlinkSync(resolve("node_modules"), join(directory, "node_modules"));
  const rows = members.map((member) => {
    const kept = Object.entries(whole).filter(([name]) => name !== member);
    const texts = kept.map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    return `{ ${[...texts, ...(member === "handle" ? [] : ["handle: () => {}"])].join(", ")} },`;
  });
  const type = JSON.stringify(resolve("dist/src/http/endpoint.js"));
  const code = [`import type { Endpoint } from ${type};`, "export const rows: Endpoint[] = [", ...rows, "];"];
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
  return [...output.matchAll(/^rows\.ts\((\d+),.*/gm)].map(([line]) => line);
}

describe("the table of endpoints", () => {
  it("has each operation of the contract under its id, and no other", () => {
    const documented = Object.entries(contract["paths"] as Documented).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => {
        return `${operationId} ${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`;
      }),
    );
    const served = endpoints.map(({ operation, at }) => `${operation} ${at.replace(/\/?(?:\?.*)?$/, "")}`);
    expect([...new Set(served)].sort()).to.deep.equal(documented.sort());
  });

  it("does not compile with a row that has no audit event, or lacks any other member", async () => {
    const members = [...Object.keys(whole), "handle"];
    const errors = await errorsWithout([...members, "none"]);
    expect(errors).to.have.lengthOf(members.length);
    for (const [i, member] of members.entries())
      expect(errors[i]).to.match(new RegExp(`^rows\\.ts\\(${i + 3},.* Property '${member}' is missing`));
  });

  const row = (at: Endpoint["at"]): Endpoint => ({
    operation: "status",
    at,
    scope: "root",
    guard: "none",
    audit: null,
    handle: () => {},
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
    it(`gives ${method} ${path}${query && `?${query}`} ${at ?? "no row"}`, () => {
      const result = table.find(method, { path, query, authority: null });
      expect([result?.endpoint?.at ?? null, result?.parameter ?? ""]).to.deep.equal([at, parameter]);
    });

  it("names the methods of a path, HEAD where GET is", () => {
    expect(table.methodsOf("/v1/a/own")).to.deep.equal(["PUT", "GET", "HEAD"]);
    expect(table.methodsOf("/v1/b")).to.deep.equal([]);
  });
});
