/** Homes of test servers. One certificate serves all tests of a process: making one is slow. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TlsPair } from "../../src/http/listener.js";
import { makeCertificate } from "../../src/server/certificate.js";
import { ownNames } from "../../src/server/certificate-rules.js";
import { temporaryDirectory } from "./clean-up.js";

let kept: TlsPair | null = null;
let lasting: TlsPair | null = null;

/** A home that does not exist yet: its server makes a certificate of its own. */
export function emptyHome(): string {
  return join(temporaryDirectory(), "home");
}

/** A home with the certificate of an earlier server; the first one is empty. */
export function preparedHome(): string {
  return kept === null ? emptyHome() : homeWith(kept);
}

/**
 * Makes a home for a server whose clock a test moves, with a certificate that is valid at all times: the server would renew
 * another one in the middle of a test.
 */
export async function lastingHome(): Promise<string> {
  lasting ??= await makeCertificate(ownNames, new Date(0), new Date("9999-12-31T23:59:59Z"));
  return homeWith(lasting);
}

function homeWith({ cert, key }: TlsPair): string {
  const home = emptyHome();
  mkdirSync(join(home, "tls"), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, "tls", "cert.pem"), cert, { mode: 0o644 });
  writeFileSync(join(home, "tls", "key.pem"), key, { mode: 0o600 });
  return home;
}

/** Keeps the certificate that a server has made in its home for the homes after it. */
export function keepCertificate(home: string, certificateFile: string): void {
  if (kept !== null || certificateFile !== join(home, "tls", "cert.pem")) return;
  kept = {
    cert: readFileSync(certificateFile, "utf8"),
    key: readFileSync(join(home, "tls", "key.pem"), "utf8"),
  };
}
