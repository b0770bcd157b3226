/** Homes of test servers. One certificate serves all tests of a process: making one is slow. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownNames } from "../../src/server/certificate-rules.js";
import { temporaryDirectory } from "./clean-up.js";

type Pair = { readonly certificate: string; readonly key: string };

let kept: Pair | null = null;
let lasting: Pair | null = null;

/** A home that does not exist yet: its server makes a certificate of its own. */
export function emptyHome(): string {
  return join(temporaryDirectory(), "home");
}

/** A home with the certificate of an earlier server; the first one is empty. */
export function preparedHome(): string {
  return kept === null ? emptyHome() : homeWith(kept);
}

/**
 * Makes a home for a server whose clock a test moves, with a certificate that is valid at all times: a server renews its own
 * once its clock is ahead, in the middle of a test, and a client trusts one of the two.
 */
export async function lastingHome(): Promise<string> {
  if (lasting === null) {
    const { generate } = await import("selfsigned"); // slow to load
    const names = ownNames.map((name) =>
      /[.:]/.test(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
    );
    const { cert, private: key } = await generate([{ name: "commonName", value: "strongroom" }], {
      keyType: "ec",
      curve: "P-256",
      algorithm: "sha256",
      notBeforeDate: new Date(0),
      notAfterDate: new Date("9999-12-31T23:59:59Z"),
      extensions: [{ name: "subjectAltName", altNames: names }],
    });
    lasting = { certificate: cert, key };
  }
  return homeWith(lasting);
}

function homeWith({ certificate, key }: Pair): string {
  const home = emptyHome();
  mkdirSync(join(home, "tls"), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, "tls", "cert.pem"), certificate, { mode: 0o644 });
  writeFileSync(join(home, "tls", "key.pem"), key, { mode: 0o600 });
  return home;
}

/** Keeps the certificate that a server has made in its home for the homes after it. */
export function keepCertificate(home: string, certificateFile: string): void {
  if (kept !== null || certificateFile !== join(home, "tls", "cert.pem")) return;
  kept = {
    certificate: readFileSync(certificateFile, "utf8"),
    key: readFileSync(join(home, "tls", "key.pem"), "utf8"),
  };
}
