/** Certificate files of a program that uses the broker: what its environment trusts already, and the session's authority. */
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";

/** Variables of tools that add a file's certificates to their own roots. */
const added = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/** Variables of tools for which a file's certificates replace the roots. */
const replacing = [
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "GIT_SSL_CAINFO",
  "CARGO_HTTP_CAINFO",
  "AWS_CA_BUNDLE",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "PERL_LWP_SSL_CA_FILE",
  "HTTPS_CA_FILE",
];

/** Variables that replace the roots of tools which read one of the others otherwise: they are set only where they are already. */
const overriding = [
  "npm_config_cafile",
  "NPM_CONFIG_CAFILE",
  "NIX_SSL_CERT_FILE",
  "HTTPLIB2_CA_CERTS",
  "BUNDLE_SSL_CA_CERT",
  "COMPOSER_CAFILE",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
];

/** `missing`: variables that name nothing that can be read; the system's roots stand in for it. */
type Trust = { readonly variables: Readonly<Record<string, string>>; readonly missing: readonly string[] };

/**
 * Writes the files into a directory, and returns the variables that name them. Each variable keeps what it said: its file has
 * the certificates of the file that it named before, or else the roots that the tool would have used.
 * @param authority the session's certificates, PEM
 */
export async function writeTrust(directory: string, authority: string, env: NodeJS.ProcessEnv): Promise<Trust> {
  const files = new TrustFiles(directory, authority);
  // Roots of tools for which no variable of their own is set: OpenSSL's variables, the system's roots, or Node's.
  const { SSL_CERT_FILE, SSL_CERT_DIR = "" } = env;
  const inDirectories = await Promise.all(SSL_CERT_DIR.split(":").filter(Boolean).map(certificatesAt));
  const roots = [await firstRoots([SSL_CERT_FILE ?? "", ...systemRoots]), ...inDirectories].join("\n");
  const missing: string[] = [];
  const rootsNamed = async (name: string, source: string | undefined, otherwise: string) => {
    if (source === undefined || source === "") return otherwise;
    const found = await certificatesAt(source);
    if (found === null) missing.push(name);
    return found ?? otherwise;
  };
  const variables: Record<string, string> = {};
  for (const name of added) variables[name] = await files.withAuthority(await rootsNamed(name, env[name], ""));
  for (const name of [...replacing, ...overriding.filter((one) => env[one])]) {
    variables[name] = await files.withAuthority(await rootsNamed(name, env[name] ?? fallback(name, env), roots));
  }
  variables["SSL_CERT_FILE"] = await files.withAuthority(roots);
  const wgetRoots = await rootsNamed("WGETRC", certificateOfWgetrc(await userWgetrc(env)), roots);
  await files.write(wgetrcName, `ca_certificate = ${await files.withAuthority(wgetRoots)}\n`);
  return { variables: { ...variables, SSL_CERT_DIR: "" }, missing };
}

/** File of the settings of wget that name the session's authority, in the session's directory. */
export const wgetrcName = "wgetrc";

/**
 * Returns the environment with a file of the user's settings of wget and the session's authority, which is written to `target`.
 * DANGER: a program in the sandbox may have made the user's file a link to a token. It is copied by a process that can read no
 * more than the program which gets the copy: in the sandbox, by one inside.
 * @param directory the session's
 */
export async function withWgetrc(
  env: NodeJS.ProcessEnv,
  directory: string,
  target: string,
): Promise<NodeJS.ProcessEnv> {
  const authority = await readFile(join(directory, wgetrcName), "utf8");
  await writeFile(target, `${await userWgetrc(env)}\n${authority}`, { mode: 0o600, flag: "wx" });
  return { ...env, WGETRC: target };
}

/** Python's requests reads curl's variable where its own is not set. */
function fallback(name: string, { CURL_CA_BUNDLE }: NodeJS.ProcessEnv): string | undefined {
  return name === "REQUESTS_CA_BUNDLE" ? CURL_CA_BUNDLE : undefined;
}

/** The files of one session: one for each different set of roots. */
class TrustFiles {
  readonly #directory: string;
  readonly #authority: string;
  readonly #written = new Map<string, Promise<string>>();

  constructor(directory: string, authority: string) {
    this.#directory = directory;
    this.#authority = authority;
  }

  /** Returns the file with these certificates and the session's own. */
  withAuthority(roots: string): Promise<string> {
    const known = this.#written.get(roots);
    if (known !== undefined) return known;
    const written = this.write(`ca-${this.#written.size}.pem`, `${roots}\n${this.#authority}`);
    this.#written.set(roots, written);
    return written;
  }

  async write(name: string, text: string): Promise<string> {
    const file = join(this.#directory, name);
    await writeFile(file, text, { mode: 0o644, flag: "wx" }); // no secret; in a directory that a container may change
    return file;
  }
}

const systemRoots = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

async function firstRoots(files: readonly string[]): Promise<string> {
  for (const file of files) {
    const found = file === "" ? null : await certificatesAt(file);
    if (found !== null) return found;
  }
  return rootCertificates.join("\n");
}

/** Returns the certificates in a file, or in a directory's files; null where there are none. A private key stays where it is. */
async function certificatesAt(path: string): Promise<string | null> {
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const names = isDirectory ? await readdir(path).catch(() => []) : [""];
  const texts = await Promise.all(names.map((name) => readFile(join(path, name), "latin1").catch(() => "")));
  const found = texts.flatMap((text) => text.match(certificate) ?? []);
  return found.length === 0 ? null : [...new Set(found)].join("\n");
}

/** Also in the forms of OpenSSL. */
const certificate = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

/** Settings of wget, whose TLS library, GnuTLS, reads no variable. */
async function userWgetrc({ WGETRC, HOME }: NodeJS.ProcessEnv): Promise<string> {
  const file = WGETRC ?? (HOME === undefined ? "" : join(HOME, ".wgetrc"));
  const isFile = await stat(file).then(
    (found) => found.isFile(),
    () => false, // a pipe would wait for its writer
  );
  return isFile ? readFile(file, "utf8").catch(() => "") : "";
}

/** wget ignores case, dashes and underscores in a name; the last setting counts. */
function certificateOfWgetrc(text: string): string | undefined {
  return [...text.matchAll(/^[ \t]*ca[-_]*certificate[ \t]*=[ \t]*(.*?)[ \t]*$/gim)].at(-1)?.[1];
}
