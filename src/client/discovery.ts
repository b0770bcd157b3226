/** Discovery of the server's address, certificate and token: options first, then environment, then the home directory. */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { defaultHome } from "./default-home.js";
import { StrongroomError, systemCode } from "./errors.js";
import { isOwnSocket, ServerHome } from "./server-home.js";

export type PlaceOptions = {
  /** The server's home directory (default: `STRONGROOM_HOME`, then the user's data directory for strongroom). */
  readonly home?: string | undefined;
  /**
   * `https://host:port` (default: `STRONGROOM_ADDRESS`, then the server's Unix socket, then the address that the running
   * server announced, then localhost with the port in `STRONGROOM_PORT`, or 13100).
   */
  readonly address?: string | undefined;
  /** The server's Unix socket, or `off` (default: `STRONGROOM_SOCKET`, then the announced one, then the home's). */
  readonly socket?: string | undefined;
  readonly token?: string | undefined;
  /** File of the token (default: `STRONGROOM_TOKEN`, then `STRONGROOM_TOKEN_FILE`, then `token` in the home). */
  readonly tokenFile?: string | undefined;
  /** The certificate to trust, in PEM. Means TLS: the socket is not used. */
  readonly certificate?: string | undefined;
  /**
   * File of the certificate to trust (default: `STRONGROOM_TLS_CERT`, then `tls/cert.pem` in the home). The option means TLS,
   * the variable does not.
   */
  readonly certificateFile?: string | undefined;
  /** The variables to read in place of the process's own. */
  readonly environment?: Environment | undefined;
};

type FoundToken = {
  /** Null if none was found. */
  readonly token: string | null;
  readonly tokenSource: string;
  /** Why a named file could not be read. */
  readonly problem?: string;
};

type FoundCertificate = {
  readonly certificate: string;
  /** Source of the certificate, for messages. */
  readonly certificateSource: string;
};

export type TlsLocation = FoundToken & FoundCertificate & { readonly address: URL; readonly socket: null };

/** A Unix socket. */
type SocketLocation = FoundToken & { readonly address: null; readonly socket: string };

export type ServerLocation = TlsLocation | SocketLocation;

/** Returns the location's name for messages. */
export function locationName({ address, socket }: ServerLocation): string {
  return address?.origin ?? socket ?? "";
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The `tokenSource` of a token that the caller passed. */
export const tokenOption = "the option token";

const tokenVariable = "STRONGROOM_TOKEN";
const defaultPort = "13100";

/**
 * Returns the server over TLS.
 * @throws StrongroomError BAD_REQUEST, UNREACHABLE, UNTRUSTED_CERTIFICATE, UNTRUSTED_HOME
 */
export async function findServer(options: PlaceOptions): Promise<TlsLocation> {
  const { environment = process.env } = options;
  const home = findHome(options, environment);
  return {
    socket: null,
    address: mustBeAddress(
      (options.address ?? environment["STRONGROOM_ADDRESS"]) ||
        (await announcedAddress(home)) ||
        defaultAddress(environment),
    ),
    ...(await findCertificate(options, environment, home)),
    ...(await findToken(options, environment, home)),
  };
}

/**
 * Returns null if there is no socket of this user's, or the caller named an address or a certificate, which mean TLS. The
 * variable STRONGROOM_TLS_CERT does not: it is the server's own setting too, for names that need not include localhost.
 * @throws StrongroomError UNTRUSTED_HOME
 */
export async function findSocket(options: PlaceOptions): Promise<SocketLocation | null> {
  const { environment = process.env } = options;
  if (options.address || environment["STRONGROOM_ADDRESS"] || options.certificate || options.certificateFile)
    return null;
  const home = findHome(options, environment);
  const named = options.socket || environment["STRONGROOM_SOCKET"];
  if (named === "off") return null;
  const socket = named ? resolve(named) : ((await home.announcement()).socket ?? join(home.path, "strongroom.sock"));
  if (!(await isOwnSocket(socket))) return null;
  return { address: null, socket, ...(await findToken(options, environment, home)) };
}

/** Returns the files outside of the home that a running server says are its own: the socket, and those of its secrets. */
export async function announcedFiles(home: string): Promise<readonly string[]> {
  const { socket, files } = await new ServerHome(home).announcement();
  return [...(socket === undefined ? [] : [socket]), ...files];
}

function findHome({ home }: PlaceOptions, environment: Environment): ServerHome {
  return new ServerHome(resolve(home ?? (environment["STRONGROOM_HOME"] || defaultHome(environment))));
}

/** Returns the address of a server that starts with the same environment. With port 0 it would announce its address. */
function defaultAddress({ STRONGROOM_PORT: port = "" }: Environment): string {
  const isPort = /^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) < 65_536;
  return `https://localhost:${isPort ? port : defaultPort}`;
}

/** @throws StrongroomError UNTRUSTED_HOME for another machine's address */
async function announcedAddress(home: ServerHome): Promise<string | undefined> {
  const { url } = await home.announcement();
  if (url === undefined || isLoopback(mustBeAddress(url))) return url;
  throw new StrongroomError(
    "UNTRUSTED_HOME",
    `the server of ${home.path} listens on ${url}, not on this machine's loopback: if it is yours, set STRONGROOM_ADDRESS to that`,
  );
}

function mustBeAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && url.href === `${url.origin}/`) return url;
  throw new StrongroomError(
    "BAD_REQUEST",
    "the server's address must be https://, a host name and an optional port, as in https://localhost:13100",
  );
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

async function findCertificate(
  { certificate, certificateFile }: PlaceOptions,
  environment: Environment,
  home: ServerHome,
): Promise<FoundCertificate> {
  if (certificate !== undefined) return mustBePem(certificate, "the option certificate");
  const named = certificateFile ?? (environment["STRONGROOM_TLS_CERT"] || undefined);
  if (named !== undefined) return mustBePem(await readCertificate(named), named);
  const found = await home.certificate();
  if (found !== null) return mustBePem(found, join(home.path, "tls", "cert.pem"));
  throw new StrongroomError(
    "UNREACHABLE",
    `no server is running for the vault in ${home.path}: start it with  strongroom up  or name its home with STRONGROOM_HOME`,
  );
}

async function readCertificate(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new StrongroomError(
      "UNTRUSTED_CERTIFICATE",
      `the certificate ${file} cannot be read (${systemCode(error)}): check that it exists and that you may read it`,
    );
  }
}

async function mustBePem(certificate: string, certificateSource: string): Promise<FoundCertificate> {
  const { X509Certificate } = await import("node:crypto"); // slow to load, and not needed for a socket
  try {
    new X509Certificate(certificate);
  } catch {
    throw new StrongroomError("UNTRUSTED_CERTIFICATE", `${certificateSource} holds no certificate in PEM: correct it`);
  }
  return { certificate, certificateSource };
}

async function findToken(options: PlaceOptions, environment: Environment, home: ServerHome): Promise<FoundToken> {
  if (options.token !== undefined) return { token: options.token, tokenSource: tokenOption };
  const inEnvironment = environment[tokenVariable];
  if (options.tokenFile === undefined && inEnvironment) return { token: inEnvironment, tokenSource: tokenVariable };
  const named = options.tokenFile ?? (environment["STRONGROOM_TOKEN_FILE"] || undefined);
  if (named === undefined)
    return { token: (await home.token())?.trim() ?? null, tokenSource: join(home.path, "token") };
  try {
    return { token: (await readFile(named, "utf8")).trim(), tokenSource: named };
  } catch (error) {
    const where = options.tokenFile === undefined ? `${named} (STRONGROOM_TOKEN_FILE)` : named;
    const code = systemCode(error);
    return { token: null, tokenSource: named, problem: `cannot read ${where}: ${reasons[code] ?? code}` };
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "check its owner and mode",
  EISDIR: "it is a directory",
  ENOENT: "no such file",
};

/** RFC 6750's b64token: for other text Node's own error would quote the header. */
const tokenText = /^[A-Za-z0-9._~+/-]+=*$/;

/** @throws StrongroomError UNAUTHORIZED */
export function mustHaveToken({ token, tokenSource, problem: unreadable }: FoundToken): string {
  if (token !== null && tokenText.test(token)) return token;
  const problem =
    token === null
      ? (unreadable ??
        `no token can be read from ${tokenSource}: start the server once, or name the file that holds it`)
      : `${tokenSource} does not hold a token: correct it, or ${otherToken(tokenSource)}`;
  throw new StrongroomError("UNAUTHORIZED", problem, { credential: "token" });
}

function otherToken(source: string): string {
  return source === tokenVariable ? "unset it to use the token file" : "name the file that does";
}
