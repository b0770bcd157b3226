/** Homes of test servers. One certificate serves all tests of a process: making one is slow. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./clean-up.js";

type Pair = { readonly certificate: string; readonly key: string };

let kept: Pair | null = null;

/** A home that does not exist yet: its server makes a certificate of its own. */
export function emptyHome(): string {
  return join(temporaryDirectory(), "home");
}

/** A home with the certificate of an earlier server; the first one is empty. */
export function preparedHome(): string {
  const home = emptyHome();
  if (kept === null) return home;
  mkdirSync(join(home, "tls"), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, "tls", "cert.pem"), kept.certificate, { mode: 0o644 });
  writeFileSync(join(home, "tls", "key.pem"), kept.key, { mode: 0o600 });
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
