/** Checks of the token, and of the certificate with its key. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isToken } from "../../config/readers.js";
import { readFileBytes, systemFiles } from "../../files/durable.js";
import {
  certificateEnd,
  certificateStart,
  covers,
  isPair,
  isSelfMade,
  renewWhenLeft,
} from "../../server/certificate-rules.js";
import type { FindingCode } from "./finding.js";
import { examine, type Inspection, reading, reportTemps } from "./inspection.js";

const trustAnew = "clients must trust the new file";
const putBack = "restore a matching pair, or move both away and start the server, which creates a new one";

const clockFirst = "check this machine's clock, which is behind or was ahead when it was made; if the clock is right, ";

const clientNames = ["localhost", "127.0.0.1"];

/** A missing token is no finding: it may come from a setting, and otherwise the next start creates one. */
export async function examineToken(inspection: Inspection): Promise<void> {
  const path = inspection.home.token;
  const text = await readExamined(inspection, path, "file");
  if (text === null || isToken(text.trim())) return;
  const message = "it does not contain a token";
  const remedy = "write one into it, or remove it and start the server, which creates a new one";
  inspection.report({ code: "token-damaged", path, message, remedy, fix: null });
}

/** Both missing is no finding: they may come from settings, and otherwise the next start creates them. */
export async function examineCertificate(inspection: Inspection): Promise<void> {
  const { tls, certificate: certFile, privateKey: keyFile } = inspection.home;
  if ((await examine(inspection, tls, "directory")) === null) return;
  await reportTemps(inspection, tls);
  const cert = await readExamined(inspection, certFile, "certificate");
  const key = await readExamined(inspection, keyFile, "file");
  if (cert === null && key === null) return;
  const certificate = parsed(inspection, certFile, cert, (pem) => new X509Certificate(pem));
  const privateKey = parsed(inspection, keyFile, key, (pem) => createPrivateKey(pem));
  if (certificate !== null) checkCertificate(inspection, certificate);
  if (certificate === null || privateKey === null || isPair(certificate, privateKey)) return;
  const message = "it does not match the certificate beside it, or one of them is damaged";
  const remedy = isSelfMade(certificate) ? `restart the server, which creates a new pair; ${trustAnew}` : putBack;
  inspection.report({ code: "certificate-mismatch", path: keyFile, message, remedy, fix: null });
}

/** Longest token, certificate or key that is read. */
const mostBytes = 1024 * 1024;

async function readExamined(
  inspection: Inspection,
  path: string,
  kind: "file" | "certificate",
): Promise<string | null> {
  if ((await examine(inspection, path, kind)) === null) return null;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, mostBytes));
  return bytes && Buffer.from(bytes).toString("utf8");
}

/** `text` null: missing, or already reported. */
function parsed<T>(inspection: Inspection, path: string, text: string | null, parse: (pem: string) => T): T | null {
  try {
    if (text !== null) return parse(text);
  } catch {
    // the finding says more than the library's message
  }
  const message = text === null ? "it is missing, while the other file of the pair exists" : "it is not valid PEM";
  inspection.report({ code: "certificate-damaged", path, message, remedy: putBack, fix: null });
  return null;
}

function checkCertificate(inspection: Inspection, certificate: X509Certificate): void {
  const path = inspection.home.certificate;
  const remedy = isSelfMade(certificate)
    ? `restart the server, which creates a new one; ${trustAnew}`
    : "replace it and its key, or move both away and start the server, which creates its own";
  const report = (code: FindingCode, message: string, first = "") =>
    inspection.report({ code, path, message, remedy: `${first}${remedy}`, fix: null });
  const left = certificateEnd(certificate) - inspection.now;
  if (left <= 0) report("certificate-expired", "it has expired");
  else if (left < renewWhenLeft) report("certificate-expired", "it expires in less than 30 days");
  if (certificateStart(certificate) > inspection.now) report("certificate-expired", "it is not valid yet", clockFirst);
  const missing = clientNames.filter((name) => !covers(certificate, name));
  if (missing.length > 0) report("certificate-names", `it does not cover ${missing.join(" and ")}`);
}
