/** `strongroom use login`: a person logs in at a provider of OAuth, and the server stores the refresh token that this brings. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import type { StrongroomClient, Use } from "../../client/client.js";
import { StrongroomError } from "../../client/client.js";
import { CommandFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { printable, say } from "../kit/output.js";
import { parseJsonObject, type UnknownObject } from "../kit/prompts/input.js";

export type LoginFlags = { readonly authorize?: string; readonly device?: true };

/** `endpoint`: where a person logs in, or a device asks for a code. */
type Login = { readonly path: string; readonly host: string; readonly client: OAuthClient; readonly endpoint: URL };
type OAuthClient = NonNullable<Use["oauth"]>;

/** How long a person may take where the provider does not say, in milliseconds. */
const patienceMs = 600_000;

/** Logs in and returns the host of the binding. @throws CommandFailure */
export async function logIn(
  io: Io,
  server: StrongroomClient,
  path: string,
  host: string | undefined,
  { authorize, device }: LoginFlags,
): Promise<string> {
  const { uses } = await server.showUses(path);
  const bound = uses.flatMap(({ host: to, oauth }) => (oauth === undefined ? [] : [{ host: to, client: oauth }]));
  const found = bound.filter((each) => host === undefined || each.host === host);
  const [first] = found;
  if (first === undefined)
    throw new CommandFailure(
      "notFound",
      `${path} has no such binding: strongroom use add ${shellWord(path)} HOST --oauth URL --client-id ID  makes one`,
    );
  if (found.length > 1) {
    const hosts = found.map((each) => each.host).join(", ");
    throw new CommandFailure("usage", `${path} is bound to several hosts: name one of ${hosts}`);
  }
  const member = device ? "device_authorization_endpoint" : "authorization_endpoint";
  const endpoint = authorize === undefined ? await discover(first.client, member) : httpsUrl(authorize, "--authorize");
  const login = { path, endpoint, ...first };
  await (device ? logInOnDevice : logInHere)(io, server, login);
  return first.host;
}

/** Finds an endpoint in the provider's metadata (RFC 8414), or that of OpenID Connect. */
async function discover({ tokenUrl }: OAuthClient, member: string): Promise<URL> {
  for (const name of ["oauth-authorization-server", "openid-configuration"]) {
    const found = await fetchJson(new URL(`/.well-known/${name}`, tokenUrl)).catch(() => null);
    if (found?.["token_endpoint"] === tokenUrl) return httpsUrl(found[member], member);
  }
  throw new CommandFailure(
    "notFound",
    `${new URL(tokenUrl).host} does not say where to log in: name its authorization endpoint with --authorize`,
  );
}

/** Authorization code with PKCE (RFC 7636) and an address on the loopback interface (RFC 8252). */
async function logInHere(io: Io, server: StrongroomClient, { path, host, client, endpoint }: Login): Promise<void> {
  const codeVerifier = randomBytes(32).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  const answer = await listen(state);
  try {
    const { redirectUri } = answer;
    const parameters = {
      ...{ response_type: "code", client_id: client.clientId, redirect_uri: redirectUri, state },
      ...{
        code_challenge: createHash("sha256").update(codeVerifier).digest("base64url"),
        code_challenge_method: "S256",
      },
      ...(client.scope !== undefined && { scope: client.scope }),
    };
    for (const [name, value] of Object.entries(parameters)) endpoint.searchParams.set(name, value);
    say(io, `open this address in a browser on this machine, and log in:\n  ${endpoint.href}\n`);
    const code = await withinTime(io, answer.code, patienceMs);
    await server.logIn(path, host, { code, codeVerifier, redirectUri });
  } finally {
    answer.close();
  }
}

/** Listens for the one request that the provider's page sends the browser to. Requests with another state are refused. */
async function listen(state: string) {
  const listener = createServer();
  const code = new Promise<string>((resolve, reject) => {
    listener.on("request", (req, res) => {
      const { pathname, searchParams } = new URL(req.url ?? "/", "http://127.0.0.1");
      if (req.method !== "GET" || pathname !== "/callback" || searchParams.get("state") !== state)
        return void res.writeHead(404, { connection: "close" }).end();
      const given = searchParams.get("code");
      const text = given === null ? "The login was refused." : "The login is being completed.";
      res.writeHead(200, { "content-type": "text/plain", connection: "close" });
      res.end(`${text} You can close this page and return to the terminal.\n`);
      listener.close();
      if (given !== null) resolve(given);
      else
        reject(new CommandFailure("aborted", "the provider refused the login: check the client's id and its scopes"));
    });
  });
  code.catch(() => {}); // it may be refused before the command waits for it
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const close = () => {
    listener.close();
    listener.closeAllConnections();
  };
  return { redirectUri: `http://127.0.0.1:${port}/callback`, code, close };
}

async function withinTime<T>(io: Io, work: Promise<T>, ms: number): Promise<T> {
  const ended = new AbortController();
  const late = io.sleep(ms, ended.signal).then(() => {
    throw tooLate();
  });
  late.catch(() => {}); // it ends with the work
  return Promise.race([work, late]).finally(() => ended.abort());
}

function tooLate(): CommandFailure {
  return new CommandFailure("aborted", "the time for this login is over: run the command again");
}

/** Device authorization (RFC 8628): a person enters a code on another machine, and the server asks the provider until then. */
async function logInOnDevice(io: Io, server: StrongroomClient, { path, host, client, endpoint }: Login): Promise<void> {
  const { clientId, scope } = client;
  const form = new URLSearchParams({ client_id: clientId, ...(scope !== undefined && { scope }) });
  const device = readDevice(await fetchJson(endpoint, form));
  const end = io.clock.elapsed() + device.lifeMs;
  say(io, `open this address on any machine:\n  ${device.address}\nand enter the code:\n  ${device.userCode}\n`);
  let intervalMs = device.intervalMs;
  while (io.clock.elapsed() + intervalMs < end) {
    await io.sleep(intervalMs);
    const state = await server.logIn(path, host, { deviceCode: device.code }).then((done) => done.state, isUnavailable);
    if (state === "stored") return;
    if (state !== "pending") intervalMs += 5_000;
  }
  throw tooLate();
}

/** An endpoint that cannot be reached is asked again, more slowly. */
function isUnavailable(error: unknown): "slow-down" {
  if (error instanceof StrongroomError && error.code === "UNAVAILABLE") return "slow-down";
  throw error;
}

/** @throws CommandFailure */
function readDevice(found: UnknownObject) {
  const [code, userCode] = [found["device_code"], found["user_code"]];
  const [life, interval = 5] = [found["expires_in"], found["interval"]];
  if (typeof code !== "string" || typeof userCode !== "string" || !isSeconds(life) || !isSeconds(interval))
    throw new CommandFailure("unexpected", "the provider's response has no device code: check the client's id");
  const address = httpsUrl(found["verification_uri"], "verification_uri").href;
  const [lifeMs, intervalMs] = [life * 1000, Math.max(1, interval) * 1000];
  return { code, userCode: printable(userCode), address, lifeMs, intervalMs };
}

function isSeconds(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 86_400;
}

/** @throws CommandFailure */
function httpsUrl(text: unknown, name: string): URL {
  if (typeof text === "string" && text.startsWith("https://") && URL.canParse(text)) return new URL(text);
  throw new CommandFailure("usage", `${name} must be an https URL`);
}

const [longestMs, mostBytes] = [10_000, 64 * 1024];

/** Requests a JSON object, with GET or, for a form, with POST; follows no redirect. @throws CommandFailure */
async function fetchJson(url: URL, form?: URLSearchParams): Promise<UnknownObject> {
  const failure = new CommandFailure("unreachable", `${url.host} did not send a JSON object for ${url.pathname}`);
  try {
    const method = form === undefined ? "GET" : "POST";
    const type = form !== undefined && { "content-type": "application/x-www-form-urlencoded" };
    const headers = { accept: "application/json", "user-agent": "strongroom", ...type };
    const asked = request(url, { method, headers, signal: AbortSignal.timeout(longestMs) });
    asked.end(form?.toString());
    const [response] = await once(asked, "response");
    const pieces: Buffer[] = [];
    for await (const piece of response) {
      pieces.push(piece);
      if (pieces.reduce((sum, { length }) => sum + length, 0) > mostBytes) throw failure;
    }
    const found = parseJsonObject(Buffer.concat(pieces).toString());
    if (response.statusCode === 200 && found !== null) return found;
  } catch {
    throw failure;
  }
  throw failure;
}
