/** Which requests a binding's limits cover: patterns against regular expressions, and spellings that servers read otherwise. */
import { expect } from "chai";
import { array, assert, constantFrom, property } from "fast-check";
import type { Binding } from "../../workers/protocol.js";
import { JudgedRequest, overrideIn } from "../../workers/use-rules.js";

function whyNot(limits: Binding, request: { readonly method: string; readonly target: string }): string | null {
  return new JudgedRequest(request).whyNot(limits);
}

function binding(limits: Partial<Binding>): Binding {
  const credential = { header: "authorization", format: "Bearer {}", basic: null };
  const rest = { methods: null, paths: null, ask: "never", private: false, name: null };
  return { host: "a.test", port: 443, ...credential, ...rest, ...limits };
}

describe("limits of paths", () => {
  const covers = (pattern: string, target: string) =>
    whyNot(binding({ paths: [pattern] }), { method: "GET", target }) === null;

  it("patterns cover the same paths as their regular expressions", () => {
    const piece = constantFrom("a", "b", "/", "*", "**", "ab", "/a/", "***", "a".repeat(40));
    const toExpression = (pattern: string) =>
      new RegExp(`^${pattern.replace(/\*+/g, (stars) => (stars.length > 1 ? ".*" : "[^/]*"))}$`, "s");
    assert(
      property(
        array(piece, { maxLength: 12 }),
        array(constantFrom("a", "b", "/", "ab", "a".repeat(33))),
        (parts, path) => {
          const [pattern, target] = [`/${parts.join("")}`, `/${path.join("")}`.replace(/\/+/g, "/")];
          expect(covers(pattern, target), `${pattern} ${target}`).to.equal(toExpression(pattern).test(target));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("a long path is judged by patterns that would make a regular expression backtrack", () => {
    const paths = Array.from({ length: 64 }, (_, i) => `/**${"a*".repeat(120)}b${String.fromCharCode(97 + (i % 26))}`);
    const judge = (target: string) => whyNot(binding({ paths }), { method: "GET", target });
    expect(judge(`/${"a".repeat(4095)}`)).to.contain("does not allow this path");
    expect(judge(`/${"a".repeat(4093)}bz`)).to.equal(null);
  });

  it("a path is refused where many long patterns would take too long, and always judged by short ones", () => {
    const many = (pattern: (i: number) => string) => Array.from({ length: 64 }, (_, i) => pattern(i));
    const long = binding({ paths: many((i) => `/*${"a*".repeat(118)}b${i % 8}*z`) });
    const target = `/${"a".repeat(3900)}/b0/b1/b2/b3/b4/b5/b6/b7/z`; // has every part of every pattern
    expect(whyNot(long, { method: "GET", target })).to.contain("too long for this many stars");
    const judged = new JudgedRequest({ method: "GET", target });
    const short = binding({ paths: many((i) => `/*a${"*a".repeat(11)}*b${i % 8}*z`).slice(32) });
    expect(judged.whyNot(short), "alone").to.contain("does not allow this path");
    expect(judged.isUndecided).to.equal(false);
    for (let i = 0; i < 8; i++) judged.whyNot(short);
    expect(judged.isUndecided, "several bindings").to.equal(true);
    const others = new JudgedRequest({ method: "GET", target: `/${"a".repeat(4000)}` });
    const lacking = binding({ paths: many(() => "/*aab*").slice(32) });
    for (let i = 0; i < 300; i++) others.whyNot(lacking);
    expect(others.isUndecided, "bindings of which the path lacks a part").to.equal(true);
    expect(whyNot(binding({ paths: ["/**/z"] }), { method: "GET", target })).to.equal(null);
  });

  const ambiguous = [
    ...["/v1/../x", "/v1/./x", "/v1/..", "/v1/.", "//x", "/v1//x", "/v1/x//", "/..", "/v1/.../x"],
    ...["/v1/%2e%2e/x", "/v1/%2E./x", "/v1/..%2fx", "/v1/..%5cx", "/v1/..\\x", "/v1/%252e%252e/x", "/v1/%25%32%65/x"],
    ...["/v1/%c0%ae%c0%ae/x", "/v1/%e0%80%ae/x", "/v1/%f0%80%80%ae/x", "/v1/..%c0%afx", "/v1/%c1%9cx", "/v1/%ff/x"],
    ...["/v1/%u002e%u002e/x", "/v1/%/x", "/v1/%zz/x", "/v1/x%", "/v1/%2/x", "/v1/%ed%a0%80/x"],
    ...["/v1/.%09./x", "/v1/.%0d./x", "/v1/.%00./x", "/v1/x%00.json", "/v1/x%7f", "/v1/.%c2%85./x", "/v1/x%0a"],
    ...[
      "/v1/..%20/x",
      "/v1/%20../x",
      "/v1/..%a0/x",
      "/v1/..%c2%a0/x",
      "/v1/x%20/y",
      "/v1/..+/x",
      "/v1/+../x",
      "/v1/x.",
    ],
    ...["/v1/x%20", "/v1/x./y", "/v1/x.+/y", "/v1/%e3%80%80../x", "/v1/..%e1%9a%80/x"],
    ...["/v1/..;/x", "/v1/..%3b/x", "/v1/x;y=/x", "/v1/x%3By", "/v1/x%3fy", "/v1/x%23y"],
    ...["/v1/%ef%bc%8e%ef%bc%8e/x", "/v1/%e2%80%a4%e2%80%a4/x", "/v1/%e2%80%a5/x", "/v1/%ef%b9%92%ef%b9%92/x"],
    ...[
      "/v1/..%ef%bc%8fx",
      "/v1/..%ef%bc%bcx",
      "/v1/..%e2%88%95x",
      "/v1/..%e2%81%84x",
      "/v1/..%c2%a5x",
      "/v1/..%e2%82%a9x",
    ],
    ...[
      "/v1/..%e2%80%8b/x",
      "/v1/.%e2%80%8d./x",
      "/v1/.%c2%ad./x",
      "/v1/%ef%bb%bf../x",
      "/v1/..%cd%8f/x",
      "/v1/%e3%80%82./x",
    ],
    ...["/v1/%61dmin", "/v1/x%2dy", "/v1/x%7Ey", "/v1/e%cc%81", `/v1/${"x".repeat(4096)}`],
  ];
  for (const target of ambiguous) {
    it(`a pattern does not cover ${target.slice(0, 60)}`, () => {
      expect(whyNot(binding({ paths: ["/**"] }), { method: "GET", target })).to.contain("the path is ambiguous");
      expect(covers("/**", `${target}?query`)).to.equal(false);
    });
  }

  const plain = [
    ...[
      "/",
      "/v1",
      "/v1/",
      "/v1/x.json",
      "/.well-known/x",
      "/v1/..x",
      "/v1/x..y",
      "/v1/a%20b",
      "/v1/c++",
      "/v1/%C3%A9",
    ],
    ...[
      "/v1/%E4%B8%AD/x",
      "/v1/x:generate",
      "/v1/@me/x,y",
      "/v1/x~y/-/_",
      "/v1/%40me",
      "/v1/x?a=../../..%2f;\\",
      "/v1/%F0%9F%98%80",
    ],
  ];
  for (const target of plain) it(`a pattern covers ${target}`, () => expect(covers("/**", target)).to.equal(true));
});

describe("headers that override a limit", () => {
  const limits: readonly Partial<Binding>[] = [
    { methods: ["GET"] },
    { paths: ["/**"] },
    { ask: "request" },
    { ask: "10m" },
  ];
  const overriding = [
    ...["x-http-method-override", "x-http-method", "x-method-override", "x_http_method_override", "X-Method", "x-verb"],
    ...["x-original-url", "x-original-uri", "x-original-path", "x-original-method", "x-rewrite-url", "x-override-url"],
    ...[
      "x-forwarded-uri",
      "x-forwarded-path",
      "x-forwarded-prefix",
      "x-forwarded-method",
      "x-forwarded-host",
      "forwarded",
    ],
    ...[
      "x-envoy-original-path",
      "x-waws-unencoded-url",
      "x-ms-original-url",
      "x-real-uri",
      "x-request-uri",
      "x-raw-url",
    ],
    ...[
      "x-http-host-override",
      "x-host",
      "x-original-host",
      "x-script-name",
      "x-path-info",
      "script-name",
      "request-uri",
    ],
    ...["x-http-path-override", "x-http-destinationurl-override", "http-method-override", "_method-override"],
  ];
  for (const name of overriding) {
    it(`a limited binding refuses a request with ${name}, which an unlimited one covers`, () => {
      for (const limit of limits) expect(overrideIn(binding(limit), ["accept", name])).to.contain(name);
      expect(overrideIn(binding({}), [name])).to.equal(null);
    });
  }

  it("a limited binding covers requests with the headers of usual clients", () => {
    const usual = [
      ...[
        "accept",
        "authorization",
        "content-type",
        "user-agent",
        "cookie",
        "origin",
        "referer",
        "x-api-key",
        "x-request-id",
      ],
      ...[
        "anthropic-version",
        "x-stainless-lang",
        "x-goog-api-client",
        "x-amz-content-sha256",
        "x-github-api-version",
        "dpop",
      ],
      ...[
        "x-forwarded-for",
        "x-http2-stream",
        "x-client-version",
        "if-match",
        "upgrade-insecure-requests",
        "x-ms-version",
      ],
      ...[
        "sec-websocket-key",
        "x-goog-upload-command",
        "git-protocol",
        "npm-command",
        "x-amz-copy-source",
        "x-upload-content-type",
      ],
    ];
    expect(overrideIn(binding({ methods: ["GET"], ask: "request" }), usual)).to.equal(null);
  });
});
