/**
 * Signatures of AWS against its published test suite (awslabs/aws-c-auth, Apache-2.0), without its requests that no HTTP client
 * sends: raw spaces and UTF-8 in the target, folded headers, a token that is not signed.
 */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { withoutQuerySignature } from "../../workers/binding-members.js";
import { utf8, withScratch } from "../../workers/memory.js";
import type { Binding } from "../../workers/protocol.js";
import { readHeaderLines } from "../../workers/uses/head.js";
import { signHead } from "../../workers/uses/sigv4.js";
import { ComputedTokens } from "../../workers/uses/tokens.js";

type Vector = {
  readonly name: string;
  readonly request: string;
  readonly headers: readonly string[];
  readonly sessionToken?: string;
  readonly signedHeaders: string;
  readonly signature: string;
};

const vectors = JSON.parse(readFileSync("test/vectors/aws-sigv4.json", "utf8")) as readonly Vector[];
const accessKey = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

type Given = {
  readonly service?: string;
  readonly headers?: readonly string[];
  readonly payloadHash?: string | null;
  readonly secret?: object;
};

/** Returns the lines of the signed head, or why there is none. */
function sign(request: string, { service = "service", headers = [], ...given }: Given): readonly string[] {
  const [method = "", target = ""] = request.split(" ");
  const place = { host: "example.amazonaws.com", port: 443 };
  const limits = { methods: null, paths: null, ask: "never", private: false, name: null };
  const placed = { header: "authorization", format: null, basic: null };
  const binding: Binding = { ...place, ...placed, ...limits, sigv4: { service, region: "us-east-1" } };
  const fields = utf8(headers.map((line) => `${line}\r\n`).join(""));
  const { payloadHash = emptyHash, secret = accessKey } = given;
  return withScratch(() => {
    const lines = readHeaderLines(binding, fields);
    if ("ok" in lines) return [lines.detail];
    const value = utf8(JSON.stringify(secret));
    const wanted = { ...place, method, target, fields, payloadHash };
    const now = Date.UTC(2015, 7, 30, 12, 36);
    const own = { etag: "", tokens: new ComputedTokens() };
    const signed = signHead({ path: "aws/key", binding, request: wanted, lines, value, now, ...own });
    if (!signed.ok) return [signed.detail];
    return new TextDecoder("latin1").decode(signed.head ?? new Uint8Array()).split("\r\n");
  });
}

describe("signatures of AWS", () => {
  for (const { name, request, headers, sessionToken, signedHeaders, signature } of vectors) {
    it(`a signature agrees with the vector ${name}`, () => {
      const secret = { ...accessKey, ...(sessionToken && { sessionToken }) };
      const credential = "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
      const authorization = `authorization: AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`;
      expect(sign(request, { headers, secret })).to.include(authorization);
    });
  }

  it("replaces the client's own signature in headers, also in those with _ for -, and in the query", () => {
    const own = ["Authorization: AWS4-HMAC-SHA256 own", "X_Amz_Date: 20000101T000000Z", "x-amz-security-token: own"];
    expect(sign("GET /", { headers: own })).to.deep.equal(sign("GET /", {}));
    const query = "X-Amz-Algorithm=a&x-amz-credential=b&X-Amz-Date=c&X-Amz-Expires=1&X%2DAmz-SignedHeaders=host";
    expect(sign(`GET /?${query}&X-Amz-Signature=d`, {})).to.deep.equal(sign("GET /", {}));
    expect(withoutQuerySignature("/a?b=1&X-Amz-Signature=d&c")).to.equal("/a?b=1&c");
    expect(withoutQuerySignature("/a?")).to.equal("/a?");
  });

  it("covers no body for S3, whose paths it signs as they are", () => {
    const lines = sign("PUT /a//b%2fc/(1)?x=a+b", { service: "s3", payloadHash: null });
    expect(lines).to.include("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    expect(lines[0]).to.equal("PUT /a//b%2fc/(1)?x=a+b HTTP/1.1");
    const same = sign("PUT /a//b%2Fc/%281%29?x=a%20b", { service: "s3", payloadHash: null });
    expect(lines.at(-3)).to.equal(same.at(-3));
  });

  it("covers the hash that the client has sent", () => {
    for (const hash of [emptyHash, "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"]) {
      const lines = sign("PUT /", { service: "s3", headers: [`X-Amz-Content-Sha256: ${hash}`], payloadHash: null });
      expect(lines.filter((line) => /content-sha256:/i.test(line))).to.deep.equal([`X-Amz-Content-Sha256: ${hash}`]);
      expect(lines.at(-3)).to.contain("SignedHeaders=host;x-amz-content-sha256;x-amz-date,");
    }
  });

  const refused: Readonly<Record<string, readonly [given: Given, says: RegExp]>> = {
    "a body in signed chunks": [
      { headers: ["x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"] },
      /signed chunks cannot be signed again/,
    ],
    "a hash that is none": [{ headers: ["x-amz-content-sha256: 0"] }, /must be a SHA-256/],
    "two hashes": [{ headers: [0, 1].map(() => `x-amz-content-sha256: ${emptyHash}`) }, /more than one header/],
    "a secret without the key": [{ secret: { accessKeyId: "A" } }, /aws\/key is not a JSON object with accessKeyId/],
    "a key with a line feed": [
      { secret: { ...accessKey, accessKeyId: "A\nB" } },
      /is not a JSON object with accessKeyId/,
    ],
    "a session token that is no text": [{ secret: { ...accessKey, sessionToken: 1 } }, /is not a JSON object/],
  };
  for (const [what, [given, says]] of Object.entries(refused)) {
    it(`a signature is not made for ${what}`, () => {
      const [line, ...others] = sign("GET /", given);
      expect(line).to.match(says);
      expect(others).to.deep.equal([]);
    });
  }
});
