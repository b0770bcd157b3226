/** Access keys of AWS at the broker: an upstream checks each signature with another implementation, aws4. */
import { expect } from "chai";
import {
  type Agent,
  bind,
  openTunnel,
  sendThrough,
  startAgent,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";
import { accessKey, sha256, verify } from "../support/aws-upstream.js";

describe("AWS signatures", () => {
  type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly agents: Record<string, Agent> };
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream(["localhost"], (req, res) => verify(req, res));
    const server = await startWithBroker([upstream]);
    const agents: Record<string, Agent> = {};
    for (const service of ["s3", "dynamodb"]) {
      await mustPut(server, `aws/${service}`, { value: JSON.stringify(accessKey) });
      const sigv4 = { service, region: "eu-central-1" };
      await bind(server, `aws/${service}`, { host: "localhost", port: upstream.port, private: true, sigv4 });
      agents[service] = await startAgent(server, { paths: [`aws/${service}`] });
    }
    return { server, upstream, agents };
  });

  function request(service: string, line: string, headers: readonly string[], body = ""): Promise<string> {
    const { upstream, agents } = rig();
    const at = `localhost:${upstream.port}`;
    const head = [`${line} HTTP/1.1`, `Host: ${at}`, "Connection: close", ...headers, "", ""].join("\r\n");
    const agent = agents[service];
    if (agent === undefined) throw new Error("no such service");
    return sendThrough(agent, at, head + body);
  }

  const json = ["Content-Type: application/x-amz-json-1.0", "X-Amz-Target: DynamoDB_20120810.ListTables"];
  const own = `Authorization: AWS4-HMAC-SHA256 Credential=placeholder/20260101/eu-central-1/s3/aws4_request, SignedHeaders=host, Signature=${sha256("own")}`;

  const signed: Readonly<
    Record<string, readonly [service: string, line: string, headers: readonly string[], body?: string]>
  > = {
    "a request without a body": ["dynamodb", "GET /a//b/../c?b=2&a=%20&a", []],
    "a body with a length": ["dynamodb", "POST /", [...json, "Content-Length: 2"], "{}"],
    "a body in chunks, which gets a length": [
      "dynamodb",
      "POST /",
      [...json, "Transfer-Encoding: chunked"],
      "3\r\n{} \r\n1\r\n \r\n0\r\n\r\n",
    ],
    "a body whose hash the client has sent": [
      "dynamodb",
      "POST /",
      [...json, "Content-Length: 2", `X-Amz-Content-Sha256: ${sha256("{}")}`],
      "{}",
    ],
    "an object of S3": [
      "s3",
      "PUT /bucket/a%20b//c%2Bd?x-id=PutObject",
      ["Content-Type: a/b", "Content-Length: 3"],
      "abc",
    ],
    "an object of S3 with its hash": [
      "s3",
      "PUT /bucket/%E4%B8%AD",
      ["Content-Type: a/b", "Content-Length: 3", `x-amz-content-sha256: ${sha256("abc")}`],
      "abc",
    ],
    "a request that the client has signed": [
      "s3",
      "GET /bucket/key",
      [own, "X-Amz-Date: 20260101T000000Z", "X-Amz-Security-Token: placeholder"],
    ],
    "a presigned request": ["s3", "GET /b/k?X-Amz-Algorithm=x&X-Amz-Credential=placeholder&X-Amz-Signature=y&z=1", []],
  };
  for (const [what, [service, line, headers, body = ""]] of Object.entries(signed)) {
    it(`the broker signs ${what}`, async () => {
      const { upstream } = rig();
      const response = await request(service, line, headers, body);
      expect(response).to.match(/^HTTP\/1\.1 200 .*signed \d+/s);
      const last = upstream.seen.at(-1);
      expect(last?.headers).to.include({ "x-amz-security-token": accessKey.sessionToken });
      expect(JSON.stringify(last)).not.to.contain("placeholder").and.not.to.contain(accessKey.secretAccessKey);
    });
  }

  it("a client can wait for 100 Continue before a body that is hashed", async () => {
    const { upstream, agents } = rig();
    const at = `localhost:${upstream.port}`;
    const agent = agents["dynamodb"];
    if (agent === undefined) throw new Error("no such service");
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const socket = await startTls(agent, opened, "localhost", "localhost");
    const head = `POST / HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\nContent-Type: a/b\r\nContent-Length: 2\r\n`;
    socket.write(`${head}Expect: 100-continue\r\n\r\n`);
    let text = "";
    const ended = new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
    socket.on("data", (piece: Buffer) => {
      if (text === "") socket.write("{}");
      text += piece.toString("latin1");
    });
    await ended;
    expect(text).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*signed 2/s);
    expect(text.match(/100 Continue/g)).to.have.length(1);
  });

  const tooLong = 1024 * 1024 + 1;
  const refused: Readonly<
    Record<string, readonly [service: string, headers: readonly string[], body: string, RegExp]>
  > = {
    "a body of more than 1 MiB": [
      "dynamodb",
      [`Content-Length: ${tooLong}`],
      "",
      /longer than 1 MiB: send its SHA-256/,
    ],
    "chunks of more than 1 MiB": [
      "dynamodb",
      ["Transfer-Encoding: chunked"],
      `${tooLong.toString(16)}\r\n${"x".repeat(tooLong)}\r\n`,
      /longer than 1 MiB: send its SHA-256/,
    ],
    "a chunk that is longer than its size": [
      "dynamodb",
      ["Transfer-Encoding: chunked"],
      "1\r\nabc\r\n0\r\n\r\n",
      /a chunk is longer than it says/,
    ],
    "signed chunks": [
      "s3",
      ["Content-Length: 1", "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"],
      "x",
      /signed chunks cannot be signed again/,
    ],
  };
  for (const [what, [service, headers, body, says]] of Object.entries(refused)) {
    it(`the broker refuses to sign ${what}`, async () => {
      const { upstream } = rig();
      const seen = upstream.seen.length;
      const response = await request(service, "PUT /x", headers, body);
      expect(response)
        .to.match(/^HTTP\/1\.1 400 /)
        .and.match(says);
      expect(upstream.seen).to.have.length(seen);
    });
  }

  const bindings: Readonly<Record<string, readonly [body: object, says: string]>> = {
    "no region": [{ sigv4: { service: "s3" } }, "sigv4.region must be a name such as us-east-1, in lower case"],
    "a service with a slash": [{ sigv4: { service: "s3/x", region: "r" } }, "sigv4.service must be a name"],
    "a text for an object": [{ sigv4: "s3" }, "sigv4 must be an object"],
    "basic beside it": [
      { sigv4: { service: "s3", region: "r" }, basic: "x" },
      "sigv4 goes without basic, header and format: it signs the head",
    ],
  };
  for (const [what, [body, says]] of Object.entries(bindings)) {
    it(`a binding with ${what} is refused`, async () => {
      const { server } = rig();
      const path = "/v1/uses/aws/s3";
      const response = await send(server, { method: "PUT", path, body: { host: "s3.example", ...body } });
      mustRefuse(response, 400, "BAD_REQUEST");
      expect(response.text).to.contain(says);
    });
  }

  it("new versions keep a binding for AWS, which is listed, and removed by its host", async () => {
    const { server } = rig();
    await mustPut(server, "aws/shown", { value: "{}" });
    const sigv4 = { service: "sts", region: "us-east-1" };
    await bind(server, "aws/shown", { host: "a.example" });
    await bind(server, "aws/shown", { host: "sts.amazonaws.com", sigv4 });
    await mustPut(server, "aws/shown", { value: JSON.stringify(accessKey) });
    const uses = async () => mustSucceed(await send(server, { path: "/v1/uses/aws/shown" }));
    const shown = { path: "aws/shown", port: 443, header: "authorization", ask: "never", private: false };
    const [plain, computed] = [
      { ...shown, host: "a.example", format: "Bearer {}" },
      { ...shown, host: "sts.amazonaws.com", sigv4 },
    ];
    expect(await uses()).to.deep.equal({ uses: [plain, computed] });
    await send(server, { method: "DELETE", path: "/v1/uses/aws/shown?host=sts.amazonaws.com" });
    expect(await uses()).to.deep.equal({ uses: [plain] });
  });
});
