/** A request that waits, as a person sees it: one fact a line, whatever the program has put into it. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import { approvalText } from "../../src/cli/kit/output/approval-text.js";
import type { Approval } from "../../src/client/client.js";

const approval: Approval = {
  id: "6b1f0b8e-5b0e-4a8b-9a52-0f6d7b8a1c2d",
  token: "agent-3f9c2a7be105",
  path: "app/api-key",
  method: "POST",
  scheme: "https",
  host: "api.example.com",
  port: 443,
  target: "/v1/messages",
  query: "beta=true",
  program: { pid: 4711, name: "curl" },
  since: "2026-03-01T12:00:00.000Z",
};

const labels = ["host", "port", "scheme", "method", "path", "query", "secret", "token", "program", "since"];

/** Labels at the beginning of the lines, and the widest line. */
function shape(text: string) {
  const lines = text.split("\n");
  const found = lines.flatMap((line) => /^ {2}(\S+)/.exec(line)?.[1] ?? []);
  return { found, lines: lines.length, widest: Math.max(...lines.map((line) => line.length)) };
}

describe("requests that wait for approval", () => {
  it("a request is shown with host and port first, one fact a line", () => {
    const text = approvalText(approval, 80);
    expect(text).to.contain(
      "  host     api.example.com\n  port     443\n  scheme   https\n  method   POST\n  path     /v1/messages\n",
    );
    expect(text).to.contain(
      "  query    beta=true\n  secret   app/api-key\n  token    agent-3f9c2a7be105\n  program  pid 4711, curl\n",
    );
    expect(shape(text).found).to.deep.equal(labels);
  });

  it("host and token stay in sight, however long path and query are", () => {
    const target = `/${"a".repeat(8000)}/end`;
    const text = approvalText({ ...approval, target, query: "b".repeat(1024), path: "日".repeat(340) }, 80);
    expect(shape(text)).to.deep.include({ found: labels }).and.to.have.property("lines").below(24);
    const plain = text.replaceAll(/\n {11}/g, "");
    expect(plain).to.contain(
      `8005 bytes in all, SHA-256 ${createHash("sha256").update(target).digest("hex")} ... aaaa`,
    );
    expect(plain).to.contain("aaa/end\n");
    const query = { length: 9000, sha256: "e3b0c442" };
    expect(approvalText({ ...approval, query }, 80)).to.contain("  query    9000 bytes, SHA-256 e3b0c442\n");
  });

  const hostile = [
    "/x\n  host     bank.example\n  port     443",
    "/x\r\u001b[2J\u001b[1;1H  host     bank.example",
    `/${" ".repeat(69)}  host     bank.example`,
    "/\u202ehost\u2066 \u200b\u00ad\u{e0041}",
    `/x${"\u0008".repeat(40)}`,
  ];
  for (const [i, target] of hostile.entries()) {
    for (const columns of [40, 80, 200]) {
      it(`a request's path, secret or program cannot imitate the request (${i + 1}) on ${columns} columns`, () => {
        const program = { pid: 1, name: target };
        const text = approvalText({ ...approval, target, path: target, query: target, program }, columns);
        expect(shape(text)).to.deep.include({ found: labels });
        expect(shape(text).widest).to.be.at.most(columns);
        expect(text.replaceAll("\n", "")).to.match(/^[ -~]+$/);
      });
    }
  }

  it("a missing query differs from one that looks like it", () => {
    expect(approvalText({ ...approval, query: "" }, 80)).to.contain("  query    (not given)\n");
    expect(approvalText({ ...approval, program: null }, 80)).to.contain("  program  unknown\n");
  });
});
