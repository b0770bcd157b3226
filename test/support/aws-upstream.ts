/** Upstream that checks each signature of AWS with another implementation, aws4. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import aws4 from "aws4";

export const accessKey = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "kept/in+the-vault",
  sessionToken: "session/token==",
};

/**
 * The verdict is the response's status and body.
 * @param right the body where the signature is right; by default, it has the length of the request's body
 */
export function verify(req: IncomingMessage, res: ServerResponse, right?: string): void {
  const pieces: Buffer[] = [];
  req.on("data", (piece: Buffer) => pieces.push(piece));
  req.on("end", () => {
    const body = Buffer.concat(pieces);
    const isRight = req.headers["authorization"] === expected(req, body);
    res.writeHead(isRight ? 200 : 403).end(isRight ? (right ?? `signed ${body.length}\n`) : "wrong\n");
  });
}

function expected({ method, url, headers }: IncomingMessage, body: Buffer): string {
  const pattern = /Credential=AKIDEXAMPLE\/\d+\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), /;
  const [, region = "", service = "", names = ""] = pattern.exec(headers["authorization"] ?? "") ?? [];
  const signed = Object.fromEntries(names.split(";").map((name) => [name, String(headers[name])]));
  const hash = headers["x-amz-content-sha256"];
  if (hash !== undefined && /^[0-9a-f]/.test(String(hash)) && hash !== sha256(body)) return "another body";
  // aws4 adds headers to a request with a body, which a client that names its hash need not have signed.
  const sent = {
    method: method ?? "",
    path: url ?? "",
    headers: signed,
    ...(body.length > 0 && hash === undefined && { body }),
  };
  const request = { service, region, ...sent };
  return String(new aws4.RequestSigner(request, accessKey).sign().headers?.["Authorization"]);
}

export function sha256(bytes: string | Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
