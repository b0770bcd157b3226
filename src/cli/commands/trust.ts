/** `strongroom trust`: how other programs can trust the server's certificate. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { rootCertificates } from "node:tls";
import type { Command } from "commander";
import { StrongroomError } from "../../client/client.js";
import { findServer } from "../../client/discovery.js";
import { systemFiles } from "../../files/durable.js";
import { nonEmpty } from "../kit/args/args.js";
import { withHome } from "../kit/connection/server.js";
import { CommandFailure, exits } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { checkNewFile, writeNewFile } from "../kit/output/new-file.js";
import { localMinute, type OutputFlags, printable, printJson, report, withHints, withResult } from "../kit/output.js";

type Flags = OutputFlags & { readonly home?: string; readonly cacert?: string; readonly bundle?: string };

/** Where systems keep the certificates that they trust, in one file. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

const details = `
Variables such as SSL_CERT_FILE replace all certificates that a program trusts,
so that it no longer reaches other servers. --bundle writes the system's
certificates and the server's into one file, for these variables.`;

/** The command, or what to do, for each program; the file's name is quoted for a shell. */
const ways: readonly (readonly [string, (file: string) => string])[] = [
  ["curl", (file) => `curl --cacert ${file} …`],
  ["Node", (file) => `export NODE_EXTRA_CA_CERTS=${file}`],
  [
    "Python",
    () => "strongroom trust --bundle roots.pem; export SSL_CERT_FILE=$PWD/roots.pem REQUESTS_CA_BUNDLE=$PWD/roots.pem",
  ],
  [
    "Debian, Ubuntu",
    (file) => `sudo cp ${file} /usr/local/share/ca-certificates/strongroom.crt && sudo update-ca-certificates`,
  ],
  ["macOS", (file) => `security add-trusted-cert -p ssl -k ~/Library/Keychains/login.keychain-db ${file}`],
  ["Windows", (file) => `certutil -user -addstore Root ${file}`],
  ["Chrome on Linux", (file) => `certutil -d sql:$HOME/.pki/nssdb -A -t P,, -n strongroom -i ${file}`],
  ["Firefox", () => "open the server's address, compare the certificate's fingerprint, then accept it"],
];

export function define(command: Command, io: Io): void {
  command
    .description("Prints the server's certificate file, its fingerprint, and how other programs can trust it.")
    .option("--cacert <file>", "the certificate (STRONGROOM_TLS_CERT; tls/cert.pem in the home)", nonEmpty)
    .option("--bundle <file>", "write the system's certificates and this one to a file", nonEmpty);
  withResult(withHome(command))
    .addHelpText("after", details)
    .action((flags) => trust(io, flags));
}

async function trust(io: Io, flags: Flags): Promise<void> {
  const { certificate, certificateSource: file } = await find(io, flags);
  const { fingerprint256, subjectAltName = "", validTo } = new X509Certificate(certificate);
  const names = subjectAltName.replace(/\b(?:DNS|IP Address):/g, "");
  const end = new Date(validTo);
  if (flags.bundle !== undefined) return writeBundle(io, flags.bundle, certificate, flags);
  if (flags.json) {
    return printJson(io, {
      path: file,
      sha256: fingerprint256,
      names: names.split(", "),
      validUntil: end.toISOString(),
    });
  }
  const shown = shellWord(file);
  const about = [
    ["certificate", printable(file)],
    ["SHA-256", fingerprint256],
    ["names", printable(names)],
    ["valid until", localMinute(end)],
  ] as const;
  io.stdout.write(`${rows(about)}
The strongroom command and its client library trust it already. For other programs:
${withHints(io, rows(ways.map(([name, how]) => [name, how(shown)])))}
The server replaces the certificate when fewer than 30 days are left or its names change: repeat the steps then.
`);
}

/** Certificates are no secrets: the file may be read by all, and replaces an earlier one. @throws CommandFailure usage */
async function writeBundle(io: Io, file: string, certificate: Uint8Array | string, flags: Flags): Promise<void> {
  const own = Buffer.from(certificate).toString("latin1").trim();
  const parts = [await systemCertificates(), own];
  await checkNewFile(file, true);
  await writeNewFile([parts.map((part) => `${part.trim()}\n`).join("")], file, true, systemFiles, 0o644);
  const shown = shellWord(resolve(file));
  report(io, flags, { file }, `${file} written: export SSL_CERT_FILE=${shown} REQUESTS_CA_BUNDLE=${shown}`);
}

/** Returns the system's certificates; Node's own where the system has no file of them. */
async function systemCertificates(): Promise<string> {
  for (const file of systemBundles) {
    const found = await readFile(file, "latin1").catch(() => null);
    if (found !== null) return found;
  }
  return rootCertificates.join("\n");
}

async function find({ env: environment }: Io, { home, cacert }: Flags) {
  try {
    return await findServer({ home, certificateFile: cacert, environment });
  } catch (error) {
    if (!(error instanceof StrongroomError)) throw error;
    throw new CommandFailure(exits[error.code], error.message);
  }
}

function rows(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, text]) => `  ${name.padEnd(20)}  ${text}\n`).join("");
}
