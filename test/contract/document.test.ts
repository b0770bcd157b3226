/** The OpenAPI document: it is served, valid, and agrees with the key worker's checks of bodies. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "chai";
import fc from "fast-check";
import { tokenName } from "../../src/access/token-record.js";
import { defaultTtlSeconds, maxOverlapSeconds, maxPaths, maxTtlSeconds } from "../../src/access/token-request.js";
import { maxCheckpoints } from "../../src/audit/format.js";
import { openApiDocument } from "../../src/contract/document.js";
import { type ErrorCode, endReasons, errorStatuses } from "../../src/errors.js";
import { readCommit } from "../../src/manifest.js";
import { credentials, lockReasons } from "../../src/observer.js";
import { parseSecretPath } from "../../src/paths/secret-path.js";
import { contractFiles } from "../../tools/contract/contract-files.js";
import { contract, documented, judge, judgeRaw, takeViolations } from "../../tools/rig/contract-judge.js";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";
import {
  maxCustomBytes,
  maxCustomNameBytes,
  maxDescriptionBytes,
  maxLabelBytes,
  maxOperations,
  maxPassphraseBytes,
  maxPathBytes,
  maxVersion,
  mostCustom,
  mostKeys,
} from "../../workers/body-limits.js";
import { withScratch } from "../../workers/memory.js";
import { bodyReaders } from "../../workers/operations/request-bodies.js";
import { codePoint } from "../support/code-points.js";

const request = { path: "/v1/openapi.json" };

describe("the OpenAPI document", () => {
  const server = shareTestServer();

  it("the OpenAPI document is served as built, with its commit, before init, while unlocked and while locked", async () => {
    const made = JSON.parse(readFileSync("dist/openapi.json", "utf8")) as { readonly info: object };
    const commit = readCommit();
    const file = commit === null ? made : { ...made, info: { ...made.info, "x-commit": commit } };
    expect(mustSucceed(await send(server(), request))).to.deep.equal(file);
    await mustInit(server());
    expect(mustSucceed(await send(server(), request))).to.deep.equal(file);
    await mustLock(server());
    expect(mustSucceed(await send(server(), request))).to.deep.equal(file);
  });

  it("the OpenAPI document is refused without the token", async () => {
    mustRefuse(await send(server(), { ...request, token: null }), 401, "UNAUTHORIZED");
  });

  it("the OpenAPI document supports only GET and HEAD", async () => {
    const answer = await send(server(), { ...request, method: "POST" });
    mustRefuse(answer, 404, "NOT_FOUND");
    expect(answer.headers.allow).to.equal("GET, HEAD");
  });

  it("the OpenAPI document names the version of the package", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(contract["info"]).to.include({ version });
  });

  it("the OpenAPI document names the limits of the server that serves it", async () => {
    const small = await startTestServer({ maxValueBytes: 1234 });
    expect((await send(small, request)).text)
      .to.contain("At most 1234 bytes of UTF-8")
      .and.not.contain("1048576");
  });

  for (const [file, text] of contractFiles()) {
    it(`the OpenAPI document matches ${file} (npm run contract)`, () => {
      expect(readFileSync(file, "utf8")).to.equal(text);
    });
  }
});

describe("the document's body schemas", () => {
  const maxValueBytes = 20;
  const readers = bodyReaders(maxValueBytes);
  const document = JSON.parse(openApiDocument({ maxValueBytes })());
  const schema = (name: string) => ({ $ref: `#/components/schemas/${name}`, components: document.components });
  const bodies = [
    ["init", "InitRequest"],
    ["unlock", "UnlockRequest"],
    ["changePassphrase", "PassphraseRequest"],
    ["createKey", "KeyRequest"],
    ["rotate", "RotateRequest"],
    ["put", "PutRequest"],
    ["changeMetadata", "MetadataRequest"],
    ["undo", "UndoRequest"],
    ["operation", "BatchRequest/properties/operations/items"],
  ] as const;

  const kinds = ["oauth-token", "api-key", "password", "certificate", "other", "key"];
  const ascii = fc.oneof(fc.string({ unit: "grapheme-ascii", maxLength: 30 }), fc.constantFrom("", ...kinds));
  const unicode = fc.string({ unit: codePoint, maxLength: 30 });
  const others = fc.constantFrom(null, true, false, 1, [], {});

  function body(texts: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
    const field = fc.oneof({ weight: 5, arbitrary: texts }, others);
    const operation = fc.record(
      {
        ...{ get: field, put: field, delete: field, move: field, copy: field, to: field },
        ...{ ifMatch: field, ifNoneMatch: fc.oneof(fc.constant("*"), field), value: field, type: field },
        ...{ encoding: fc.oneof(fc.constant("base64"), field), expiresAt: field },
      },
      { requiredKeys: [] },
    );
    const names = {
      passphrase: field,
      newPassphrase: field,
      label: field,
      keys: fc.oneof(fc.array(field, { maxLength: 17 }), field),
      force: fc.oneof(fc.boolean(), field),
      value: field,
      type: field,
      encoding: fc.oneof(fc.constant("base64"), field),
      description: field,
      expiresAt: fc.oneof(fc.constantFrom("2026-12-31T00:00:00Z", "2026-12-31T00:00:00.5+01:00", "2026-12-31"), field),
      version: fc.oneof(fc.nat(), fc.integer(), fc.double(), field),
    };
    return fc.oneof({ weight: 9, arbitrary: fc.record(names, { requiredKeys: [] }) }, operation, others);
  }

  for (const [reader, name] of bodies) {
    const numRuns = reader === "put" || reader === "operation" ? 1000 : 100; // memory for a passphrase is expensive
    const accepts = new Ajv2020({ strict: false, formats: { "date-time": isTime } }).compile(schema(name));
    const taken = (json: unknown) => withScratch(() => readers[reader](owned(JSON.stringify(json))).ok);

    it(`the schema of ${reader} agrees with the key worker on every ASCII body`, () => {
      fc.assert(
        fc.property(body(ascii), (json) => taken(json) === accepts(json)),
        { numRuns },
      );
    });

    it(`the schema of ${reader} refuses nothing that the key worker accepts, whatever the characters`, () => {
      fc.assert(
        fc.property(body(unicode), (json) => !taken(json) || accepts(json)),
        { numRuns },
      );
    });
  }

  /** RFC 3339, with the names of months and zones that JavaScript would guess left out. */
  function isTime(text: string): boolean {
    return /^\d{4}(-\d\d){2}T\d\d(:\d\d){2}(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text));
  }

  function owned(text: string) {
    const bytes = new TextEncoder().encode(text);
    const own = new Uint8Array(new ArrayBuffer(bytes.length));
    own.set(bytes);
    return own;
  }
});

describe("the document's names and limits", () => {
  const { schemas, parameters } = contract["components"] as {
    readonly schemas: Readonly<Record<string, { readonly properties: Readonly<Record<string, Rule>> }>>;
    readonly parameters: Readonly<Record<string, { readonly schema: Rule }>>;
  };
  type Rule = {
    readonly enum?: readonly string[];
    readonly items?: Rule;
    readonly pattern?: string;
    readonly default?: unknown;
    readonly maximum?: number;
    readonly maxLength?: number;
    readonly maxItems?: number;
    readonly maxProperties?: number;
    readonly propertyNames?: Rule;
    readonly additionalProperties?: Rule;
  };
  const field = (schema: string, name: string): Rule => schemas[schema]?.properties[name] ?? {};
  const codes = (low: number, high: number) =>
    Object.keys(errorStatuses).filter(
      (code) => errorStatuses[code as ErrorCode] >= low && errorStatuses[code as ErrorCode] <= high,
    );

  const rows: readonly (readonly [name: string, inDocument: unknown, inCode: unknown])[] = [
    ["names of tokens", field("TokenRequest", "name").pattern, tokenName.source],
    ["names of tokens in URLs", parameters["name"]?.schema.pattern, tokenName.source],
    ["a token's paths", field("TokenRequest", "paths").maxItems, maxPaths],
    ["a token's life", field("TokenRequest", "ttlSeconds").maximum, maxTtlSeconds],
    ["a token's default life", field("TokenRequest", "ttlSeconds").default, defaultTtlSeconds],
    ["a rotated token's overlap", field("RotationRequest", "overlapSeconds").maximum, maxOverlapSeconds],
    ["checkpoints", field("AuditVerifyRequest", "checkpoints").maxItems, maxCheckpoints],
    ["operations of a batch", field("BatchRequest", "operations").maxItems, maxOperations],
    ["passphrases", field("InitRequest", "passphrase").maxLength, maxPassphraseBytes],
    ["labels", field("KeyRequest", "label").maxLength, maxLabelBytes],
    ["keys", field("RotateRequest", "keys").maxItems, mostKeys],
    ["descriptions", field("PutRequest", "description").maxLength, maxDescriptionBytes],
    ["custom texts", field("PutRequest", "custom").maxProperties, mostCustom],
    ["names of custom texts", field("PutRequest", "custom").propertyNames?.maxLength, maxCustomNameBytes],
    ["bytes of custom texts", field("PutRequest", "custom").additionalProperties?.maxLength, maxCustomBytes],
    ["versions", field("UndoRequest", "version").maximum, maxVersion],
    ["paths", parameters["path"]?.schema.maxLength, maxPathBytes],
    ["reasons of a lock", field("LastLock", "reason").enum, lockReasons],
    ["credentials", field("Refusal", "credential").enum, credentials],
    ["ends of tokens", field("Refusal", "reason").enum, endReasons],
    ["codes of refusals", field("Refusal", "code").enum, codes(400, 499)],
    ["codes of failures", field("Failure", "code").enum, codes(500, 599)],
  ];
  for (const [name, inDocument, inCode] of rows) {
    it(`the document and the code agree on ${name}`, () => {
      expect(inCode).not.to.equal(undefined);
      expect(inDocument).to.deep.equal(inCode);
    });
  }

  it("each documented error code has the status that the server sends with it", () => {
    const wrong = documented.filter((response) => {
      const [, status, code = ""] = response.split(" ");
      return code !== "" && errorStatuses[code as ErrorCode] !== Number(status);
    });
    expect(wrong).to.deep.equal([]);
  });
});

describe("the document's pattern of paths", () => {
  const { path } = (contract["components"] as { parameters: { path: { schema: { pattern: string } } } }).parameters;
  const pattern = new RegExp(path.schema.pattern, "u");
  const accepts = (text: string) => {
    try {
      return parseSecretPath(encodeURIComponent(text)) !== "";
    } catch {
      return false;
    }
  };

  it("the pattern of paths matches every path that the server accepts", () => {
    const segment = fc.oneof(
      fc.string({ unit: codePoint, maxLength: 5 }),
      fc.constantFrom("a", ".", "..", "", "a.b", "..c"),
    );
    const path = fc.array(segment, { minLength: 1, maxLength: 34 }).map((segments) => segments.join("/"));
    fc.assert(fc.property(path, (text) => !accepts(text) || pattern.test(text)));
  });

  for (const text of [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "a/.",
    "a\\b",
    "a\nb",
    "\u0085",
    "s/".repeat(32).concat("s"),
  ]) {
    it(`the pattern of paths does not match ${JSON.stringify(text)}, which the server refuses`, () => {
      expect([accepts(text), pattern.test(text)]).to.deep.equal([false, false]);
    });
  }
});

describe("the judge of responses", () => {
  const server = shareTestServer();
  const status = { method: "GET", target: "/v1/status" };

  const faults: readonly (readonly [string, (good: Good) => Partial<Good>, string])[] = [
    ["a status", () => ({ status: 204 }), "this status is not documented"],
    ["a header", ({ headers }) => ({ headers: { ...headers, etag: '"1"' } }), "header etag is not documented"],
    ["a header's value", ({ headers }) => ({ headers: { ...headers, "cache-control": "private" } }), "is private"],
    ["a field", ({ text }) => ({ text: text.replace("{", '{"extra":1,') }), "must NOT have additional properties"],
    ["a field's type", ({ text }) => ({ text: text.replace("false", '"false"') }), "must be boolean"],
    ["a missing field", ({ text }) => ({ text: text.replace(/"port":\d+/, '"x":1') }), "required property 'port'"],
    ["a code", () => ({ status: 400, text: '{"error":"e","code":"NOT_FOUND"}' }), "must be equal to one of"],
  ];
  type Good = Pick<Parameters<typeof judge>[0], "status" | "headers" | "text">;

  for (const [name, fault, problem] of faults) {
    it(`the judge reports ${name} that the document does not have`, async () => {
      const good = await send(server(), { path: status.target, token: null });
      judge({ ...status, ...good });
      expect(takeViolations()).to.deep.equal([]);
      judge({ ...status, ...good, ...fault(good) });
      expect(takeViolations().join()).to.contain(problem);
    });
  }

  it("the judge reports a raw response that is not JSON, or whose code does not match its status", () => {
    const raw = (status: number, body: string) =>
      judgeRaw(`HTTP/1.1 ${status} X\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    raw(400, '{"error":"e","code":"BAD_REQUEST"}');
    expect(takeViolations()).to.deep.equal([]);
    raw(400, "no");
    raw(400, '{"error":"e","code":"NOT_FOUND"}');
    expect(takeViolations()).to.have.lengthOf(2);
  });
});
