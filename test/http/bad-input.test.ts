/** Invalid input: each gets a clear 400 and changes nothing. */
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";

/** Every other JSON type where a string is expected. */
const otherTypes: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["a number", 42],
  ["an empty object", {}],
  ["an object", { value: "x" }],
  ["an empty array", []],
  ["an array of a string", ["x"]],
];

const brokenBodies: readonly (readonly [string, string | Uint8Array])[] = [
  ["nothing", ""],
  ["white space", " \n"],
  ["null", "null"],
  ["a string", '"value"'],
  ["a number", "1"],
  ["true", "true"],
  ["an array", '[{"value":"x"}]'],
  ["an object that is not closed", '{"value":"x"'],
  ["a trailing comma", '{"value":"x",}'],
  ["two objects", '{"value":"x"}{"value":"x"}'],
  ["single quotes", "{'value':'x'}"],
  ["a name without quotes", '{value:"x"}'],
  ["a comment", '{"value":"x"/**/}'],
  ["a line break in a string", '{"value":"a\nb"}'],
  ["an unknown escape", '{"value":"\\x41"}'],
  ["half a unicode escape", '{"value":"\\u12"}'],
  ["a number with a leading zero", '{"value":"x","n":01}'],
  ["NaN", '{"value":"x","n":NaN}'],
  ["a byte order mark", '\ufeff{"value":"x"}'],
  ["bytes that are not UTF-8", Buffer.from([...Buffer.from('{"value":"'), 0xff, 0xfe, ...Buffer.from('"}')])],
  ["a surrogate in UTF-8", Buffer.from([...Buffer.from('{"value":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])],
  ["UTF-16", Buffer.from('{"value":"x"}', "utf16le")],
  ["a form", "value=x"],
  ["fifty thousand brackets", `{"value":${"[".repeat(50_000)}`],
];

const loneSurrogates = ['"\\ud800"', '"\\udc00"', '"a\\ud83d"', '"\\ude00\\ud83d"', '"\\ud83dx"', '"\\ud83d\\ud83d"'];

async function kept(server: TestServer): Promise<void> {
  expect((await mustGet(server, "kept"))["value"]).to.equal("old");
  expect(await mustList(server)).to.have.lengthOf(1);
}

describe("put", () => {
  const server = shareTestServer({ maxValueBytes: 1000 }, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "kept", { value: "old", description: "d" });
  });
  const mustBeRefused = async (body: string | Uint8Array | object, says: RegExp, headers = {}) => {
    for (const path of ["/v1/secrets/kept", "/v1/secrets/new"]) {
      const answer = await send(server(), { method: "PUT", path, body, headers });
      mustRefuse(answer, 400, "BAD_REQUEST");
      expect(answer.json["error"]).to.match(says);
    }
    await kept(server());
  };

  for (const [name, body] of brokenBodies) {
    it(`a put with ${name} as its body returns 400`, () => mustBeRefused(body, /one JSON object/));
  }
  it("a put without a value returns 400", () => mustBeRefused({ type: "other" }, /value must be/));
  for (const field of ["value", "type", "description"]) {
    for (const [name, wrong] of otherTypes) {
      it(`a put with ${name} as ${field} returns 400 that names the field`, () =>
        mustBeRefused({ value: "new", [field]: wrong }, new RegExp(`^${field} must be`)));
    }
    for (const lone of loneSurrogates) {
      it(`a put with a lone surrogate (${lone}) in ${field} returns 400`, () =>
        mustBeRefused(`{"value":"new","${field}":${lone}}`, new RegExp(`^${field} must be`)));
    }
  }
  for (const type of ["", "Password", "secret", "api-key ", "oauth_token"]) {
    it(`a put with the type ${JSON.stringify(type)} returns 400 that lists the allowed types`, () =>
      mustBeRefused({ value: "new", type }, /oauth-token, api-key, password, certificate, other/));
  }
  it("a put with a value over the limit returns 400 that names the limit", () =>
    mustBeRefused({ value: "x".repeat(1001) }, /1000 bytes/));
  it("a put with a value over the limit in bytes, but not in characters, returns 400", () =>
    mustBeRefused({ value: "é".repeat(501) }, /1000 bytes/));
  it("a put with a description of more than 4096 bytes returns 400", () =>
    mustBeRefused({ value: "new", description: "x".repeat(4097) }, /4096 bytes/));
  it("a put with a body over six times the value's limit plus 64 KiB returns 400 that names the limit", () =>
    mustBeRefused(JSON.stringify({ value: "new", pad: "x".repeat(6000 + 65_536) }), /71536 bytes/));
  it("a put with a chunked body over the limit returns 400", async () => {
    const body = JSON.stringify({ value: "new", pad: "x".repeat(6000 + 65_536) });
    const headers = { "transfer-encoding": "chunked", "content-length": [] };
    const answer = await send(server(), { method: "PUT", path: "/v1/secrets/kept", body, headers });
    mustRefuse(answer, 400, "BAD_REQUEST");
    await kept(server());
  });
  for (const encoding of ["gzip", "br", "deflate", "x-unknown", "identity, gzip"]) {
    it(`a put with Content-Encoding: ${encoding} returns 400`, () =>
      mustBeRefused(gzipSync('{"value":"new"}'), /compressed/, { "content-encoding": encoding }));
  }
});

describe("unknown names", () => {
  const server = shareTestServer({}, mustInit);

  it("a put with 800,000 unknown names in its body is accepted, and the secret can be read", async () => {
    const body = `{${'"a":0,'.repeat(800_000)}"value":"v"}`;
    mustSucceed(await send(server(), { method: "PUT", path: "/v1/secrets/a", body }));
    expect((await mustGet(server(), "a"))["value"]).to.equal("v");
  });
});

/** A body of `length` bytes. */
function padded(length: number): string {
  const body = '{"value":"v"}';
  return body + " ".repeat(length - body.length);
}

describe("a valid put", () => {
  const server = shareTestServer({ maxValueBytes: 1000 }, mustInit);
  const accepted: readonly (readonly [string, string, Record<string, string | readonly string[]>, string])[] = [
    ["unknown fields, and ignores them", '{"a":1,"value":"v","b":{"value":"w"},"metadata":{"type":"x"}}', {}, "v"],
    ["any Content-Type", '{"value":"v"}', { "content-type": "text/plain" }, "v"],
    ["no Content-Type", '{"value":"v"}', {}, "v"],
    ["Content-Encoding: identity", '{"value":"v"}', { "content-encoding": "identity" }, "v"],
    ["white space around everything", ' \t\r\n{ "value" : "v" } \n', {}, "v"],
    ["the last of equal names, as JSON.parse does", '{"value":"first","value":"last"}', {}, "last"],
    ["every escape", '{"value":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\ude00"}', {}, '"\\/\b\f\n\r\tA😀'],
    ["an escaped name", '{"\\u0076alue":"v"}', {}, "v"],
    ["a body of exactly six times the value's limit plus 64 KiB", padded(71_536), {}, "v"],
    ["a chunked body of that size", padded(71_536), { "transfer-encoding": "chunked", "content-length": [] }, "v"],
    ["lone surrogates in unknown fields", '{"value":"v","x":"\\ud800"}', {}, "v"],
    [
      "a value of exactly the limit, all of it escaped",
      `{"value":"${"\\u0001".repeat(1000)}"}`,
      {},
      "\u0001".repeat(1000),
    ],
  ];
  for (const [name, body, headers, value] of accepted) {
    it(`a put accepts ${name}`, async () => {
      mustSucceed(await send(server(), { method: "PUT", path: "/v1/secrets/a", body, headers }));
      expect((await mustGet(server(), "a"))["value"]).to.equal(value);
    });
  }
});

describe("init and unlock", () => {
  const server = shareTestServer();
  const verbs = ["init", "unlock"] as const;
  const mustBeRefused = async (verb: string, body: string | Uint8Array | object, says: RegExp) => {
    const before = await mustStatus(server());
    const answer = await send(server(), { method: "POST", path: `/v1/${verb}`, body });
    mustRefuse(answer, 400, "BAD_REQUEST");
    expect(answer.json["error"]).to.match(says);
    expect(await mustStatus(server())).to.include({ initialized: before["initialized"], locked: before["locked"] });
  };
  for (const verb of verbs) {
    for (const [name, body] of brokenBodies) {
      it(`${verb} with ${name} as its body returns 400`, () => mustBeRefused(verb, body, /one JSON object/));
    }
    it(`${verb} without a passphrase returns 400`, () => mustBeRefused(verb, {}, /passphrase must be/));
    for (const [name, wrong] of otherTypes) {
      it(`${verb} with ${name} as passphrase returns 400`, () =>
        mustBeRefused(verb, { passphrase: wrong }, /^passphrase must be/));
    }
    for (const lone of loneSurrogates) {
      it(`${verb} with a lone surrogate (${lone}) in the passphrase returns 400`, () =>
        mustBeRefused(verb, `{"passphrase":${lone}}`, /^passphrase must be/));
    }
    it(`${verb} with an empty passphrase returns 400`, () => mustBeRefused(verb, { passphrase: "" }, /non-empty/));
    it(`${verb} with a passphrase of 1025 bytes returns 400 that names the limit`, () =>
      mustBeRefused(verb, { passphrase: `${"é".repeat(512)}x` }, /1024 bytes/));
  }
  for (const force of [null, 0, 1, "true", {}, []]) {
    it(`init with force ${JSON.stringify(force)} returns 400`, () =>
      mustBeRefused("init", { passphrase, force }, /^force must be true or false/));
  }
  it("a passphrase of 1024 bytes is accepted", async () => {
    const fresh = await startTestServer();
    await mustInit(fresh, { passphrase: "é".repeat(512) });
  });
  it("a passphrase may contain any character that JSON can express", async () => {
    const fresh = await startTestServer();
    const odd = '\u0000"\\\u2028😀 \n';
    await mustInit(fresh, { passphrase: odd });
    mustSucceed(await send(fresh, { method: "POST", path: "/v1/unlock", body: { passphrase: odd } }));
    const wrong = await send(fresh, { method: "POST", path: "/v1/unlock", body: { passphrase: odd.trimEnd() } });
    mustRefuse(wrong, 401, "UNAUTHORIZED");
  });
});

describe("paths", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "kept", { value: "old", description: "d" });
  });
  const malformed: readonly (readonly [string, string, RegExp])[] = [
    ["an empty path", "", /the path is empty/],
    ["a leading slash", "/a", /empty segment/],
    ["a trailing slash", "a/", /empty segment/],
    ["a double slash", "a//b", /empty segment/],
    ["an encoded leading slash", "%2Fa", /empty segment/],
    ["an encoded trailing slash", "a%2F", /empty segment/],
    [".", ".", /\. or \.\./],
    ["..", "..", /\. or \.\./],
    [".. in the middle", "a/../b", /\. or \.\./],
    ["encoded ..", "a/%2e%2E/b", /\. or \.\./],
    ["encoded .. with an encoded slash", "..%2F..%2Fetc%2Fpasswd", /\. or \.\./],
    ["NUL", "a%00b", /control character/],
    ["a line break", "a%0Ab", /control character/],
    ["DEL", "a%7F", /control character/],
    ["a C1 control", "a%C2%85b", /control character/],
    ["a backslash", "a%5Cb", /backslash/],
    ["a raw backslash", "a\\b", /backslash/],
    ["white space at a segment's start", "a/%20b", /white space/],
    ["white space at a segment's end", "a%20/b", /white space/],
    ["a no-break space at an end", "a%C2%A0", /white space/],
    ["an incomplete escape", "a%2", /percent-encoded/],
    ["an invalid escape", "a%zz", /percent-encoded/],
    ["a percent sign alone", "%", /percent-encoded/],
    ["a lone surrogate", "%ED%A0%80", /percent-encoded/],
    ["an overlong encoding", "%C0%AF", /percent-encoded/],
    ["bytes that are not UTF-8", "%FF", /percent-encoded/],
    ["more than 1024 bytes", `${"a".repeat(200)}/`.repeat(6).slice(0, -1), /1024 bytes/],
    ["33 segments", Array(33).fill("s").join("/"), /32 segments/],
    ["a segment too long for a file name", "a".repeat(249), /file name/],
    ["a segment too long once it is escaped", "%C3%A9".repeat(42), /file name/],
  ];
  for (const [name, target, says] of malformed) {
    it(`put, get and delete return 400 for a malformed path (${name})`, async () => {
      for (const method of target === "" ? ["PUT", "DELETE"] : ["PUT", "GET", "DELETE"]) {
        const path = `/v1/secrets/${target}`;
        const answer = await send(server(), { method, path, ...(method === "PUT" && { body: { value: "new" } }) });
        mustRefuse(answer, 400, "BAD_REQUEST");
        expect(answer.json["error"]).to.match(says);
      }
      await kept(server());
    });
  }
});

describe("bodies without a value", () => {
  const server = shareTestServer({}, mustInit);

  for (const [method, path, kib] of [
    ["POST", "/v1/init", 64],
    ["POST", "/v1/unlock", 64],
    ["POST", "/v1/passphrase", 64],
    ["POST", "/v1/rotate", 64],
    ["POST", "/v1/keys", 64],
    ["PATCH", "/v1/metadata/a", 128],
    ["POST", "/v1/versions/a", 64],
  ] as const)
    it(`${method} ${path} refuses a body of more than ${kib} KiB`, async () => {
      const refused = await send(server(), { method, path, body: " ".repeat(kib * 1024 + 1) });
      mustRefuse(refused, 400, "BAD_REQUEST");
      expect(refused.json["error"]).to.contain(`${kib * 1024} bytes`);
    });
});
