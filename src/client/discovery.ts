/** Discovery of the server's address, certificate and token: options first, then environment, then the home directory. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { StrongroomError, systemCode } from "./client-error.js";

export type PlaceOptions = {
  /** The server's home directory (default: `STRONGROOM_HOME`, then the user's data directory for strongroom). */
  readonly home?: string | undefined;
  /** `https://host:port` (default: `STRONGROOM_ADDRESS`, then what the running server announced, then localhost:13100). */
  readonly address?: string | undefined;
  readonly token?: string | undefined;
  /** File of the token (default: `STRONGROOM_TOKEN`, then `STRONGROOM_TOKEN_FILE`, then `token` in the home). */
  readonly tokenFile?: string | undefined;
  /** The certificate to trust, in PEM. */
  readonly certificate?: string | undefined;
  /** File of the certificate to trust (default: `STRONGROOM_TLS_CERT`, then `tls/cert.pem` in the home). */
  readonly certificateFile?: string | undefined;
};

export type Place = {
  readonly address: URL;
  readonly certificate: string;
  /** Where the certificate was found, for messages. */
  readonly certificateSource: string;
  /** Null if none was found. */
  readonly token: string | null;
  readonly tokenSource: string;
};

type Environment = Readonly<Record<string, string | undefined>>;

const tokenVariable = "STRONGROOM_TOKEN";
const defaultAddress = "https://localhost:13100";

/** @throws StrongroomError BAD_REQUEST, UNREACHABLE, UNTRUSTED_CERTIFICATE */
export async function findServer(options: PlaceOptions, environment: Environment = process.env): Promise<Place> {
  const home = resolve(options.home ?? (environment["STRONGROOM_HOME"] || defaultHome(environment)));
  return {
    address: await findAddress(options.address ?? environment["STRONGROOM_ADDRESS"], home),
    ...(await findCertificate(options, environment, home)),
    ...(await findToken(options, environment, home)),
  };
}

/** The server uses a library for this rule: a test compares the two. */
export function defaultHome(environment: Environment, platform: string = process.platform): string {
  if (platform === "darwin") return join(homedir(), "Library", "Application Support", "strongroom");
  if (platform === "win32") {
    return join(environment["LOCALAPPDATA"] || join(homedir(), "AppData", "Local"), "strongroom", "Data");
  }
  return join(environment["XDG_DATA_HOME"] || join(homedir(), ".local", "share"), "strongroom");
}

async function findAddress(given: string | undefined, home: string): Promise<URL> {
  const text = given || (await announcedAddress(home)) || defaultAddress;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && url.href === `${url.origin}/`) return url;
  throw new StrongroomError(
    "BAD_REQUEST",
    "the server's address must be https://, a host name and an optional port, as in https://localhost:13100",
  );
}

/** May be a dead server's: whatever listens there now does not have its certificate. */
async function announcedAddress(home: string): Promise<string | undefined> {
  try {
    const { url } = JSON.parse(await readFile(join(home, "vault", "server.pid"), "utf8")) as { url?: unknown };
    return typeof url === "string" ? url : undefined;
  } catch {
    return undefined;
  }
}

type FoundCertificate = Pick<Place, "certificate" | "certificateSource">;

async function findCertificate(
  { certificate, certificateFile }: PlaceOptions,
  environment: Environment,
  home: string,
): Promise<FoundCertificate> {
  if (certificate !== undefined) return mustBePem(certificate, "the option certificate");
  const named = certificateFile ?? (environment["STRONGROOM_TLS_CERT"] || undefined);
  const file = named ?? join(home, "tls", "cert.pem");
  try {
    return mustBePem(await readFile(file, "utf8"), file);
  } catch (error) {
    if (error instanceof StrongroomError) throw error;
    const code = systemCode(error);
    if (named === undefined && code === "ENOENT") throw neverServed(home);
    throw new StrongroomError(
      "UNTRUSTED_CERTIFICATE",
      `the certificate ${file} cannot be read (${code}): check that it exists and that you may read it`,
    );
  }
}

function neverServed(home: string): StrongroomError {
  return new StrongroomError(
    "UNREACHABLE",
    `no server is running for the vault in ${home}: start it with  strongroom serve  or name its home with STRONGROOM_HOME`,
  );
}

function mustBePem(certificate: string, certificateSource: string): FoundCertificate {
  try {
    new X509Certificate(certificate);
  } catch {
    throw new StrongroomError("UNTRUSTED_CERTIFICATE", `${certificateSource} holds no certificate in PEM: correct it`);
  }
  return { certificate, certificateSource };
}

type FoundToken = Pick<Place, "token" | "tokenSource">;

async function findToken(options: PlaceOptions, environment: Environment, home: string): Promise<FoundToken> {
  if (options.token !== undefined) return { token: options.token, tokenSource: "the option token" };
  const inEnvironment = environment[tokenVariable];
  if (options.tokenFile === undefined && inEnvironment) return { token: inEnvironment, tokenSource: tokenVariable };
  const tokenSource = options.tokenFile ?? (environment["STRONGROOM_TOKEN_FILE"] || join(home, "token"));
  try {
    return { token: (await readFile(tokenSource, "utf8")).trim(), tokenSource };
  } catch {
    return { token: null, tokenSource };
  }
}

/** RFC 6750's b64token: for other text Node's own error would quote the header. */
const tokenText = /^[A-Za-z0-9._~+/-]+=*$/;

/** @throws StrongroomError UNAUTHORIZED */
export function mustHaveToken({ token, tokenSource }: FoundToken): string {
  if (token !== null && tokenText.test(token)) return token;
  const problem =
    token === null
      ? `there is no token in ${tokenSource} that can be read: start the server once, or name the file that holds it`
      : `${tokenSource} does not hold a token: correct it, or ${otherToken(tokenSource)}`;
  throw new StrongroomError("UNAUTHORIZED", problem, { credential: "token" });
}

function otherToken(source: string): string {
  return source === tokenVariable ? "unset it to use the token file" : "name the file that does";
}
