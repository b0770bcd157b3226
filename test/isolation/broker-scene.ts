/**
 * Requests through the broker whose credentials are searched for in the server's memory: with bodies of 1 to 200 kB,
 * upstreams that answer slowly, and clients that give up.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect } from "chai";
import {
  type Agent,
  bind,
  exchange,
  openTunnel,
  startAgent,
  startTls,
  startUpstream,
  type Upstream,
  upstreamTrust,
} from "../../tools/rig/broker-rig.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import type { ServerProcess } from "../../tools/rig/process.js";
import { mustInit, mustLock, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { type Look, passphrase, startWithCanary } from "./search.js";

/** The user of Basic and its colon are three bytes: in base64, the value begins at a character of its own. */
const bindings: readonly object[] = [
  {},
  { header: "x-api-key", format: "{}" },
  { basic: "ab" },
  { format: "token {};v=1" },
];
const secrets = bindings.map((binding, i) => ({
  path: `m/${i}`,
  value: randomBytes(36).toString("base64url"),
  binding,
}));

const random = () => randomBytes(36).toString("base64url");

/** Tokens that the endpoints have issued; the first refresh token is in the secret's value. */
const issued: { readonly access: string[]; readonly refresh: string[] } = { access: [], refresh: [] };

/** Secrets whose credential is computed. `hidden`: parts of the value that are in memory only while they are used. */
function computedSecrets(port: number) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const der = privateKey.export({ type: "pkcs8", format: "der" });
  const [secretAccessKey, sessionToken, clientSecret, refreshToken] = [random(), random(), random(), random()];
  issued.refresh.push(refreshToken);
  const tokenUrl = `https://localhost:${port}/token`;
  const accessKey = { accessKeyId: "AKIDEXAMPLE", secretAccessKey, sessionToken };
  return [
    {
      path: "m/signed",
      value: JSON.stringify(accessKey),
      binding: { sigv4: { service: "s3", region: "eu-central-1" } },
      hidden: [secretAccessKey, sessionToken],
    },
    {
      path: "m/app",
      value: pem,
      binding: { githubApp: { appId: "1", installation: "2" } },
      hidden: [pem.split("\n")[9] ?? "", pem.split("\n")[20] ?? "", der.subarray(600, 640)],
    },
    {
      path: "m/refreshed",
      value: JSON.stringify({ refreshToken, clientSecret }),
      binding: { oauth: { tokenUrl, clientId: "client" } },
      hidden: [clientSecret],
    },
  ];
}

export async function* throughBroker(requests: number): AsyncGenerator<Look, void> {
  const upstream = await startUpstream(["localhost"], respond);
  const computed = computedSecrets(upstream.port);
  const server = await startWithSecrets(upstream, [...secrets, ...computed]);
  const agents: Agent[] = [];
  for (const { path } of [...secrets, ...computed]) agents.push(await startAgent(server, { paths: [path] }));
  for (let n = 0; n < requests; n++) await request(agents[n % agents.length], upstream, n);
  const sent = upstream.seen.map(({ headers }) => JSON.stringify(headers)).join();
  for (const { value } of secrets)
    expect(sent.includes(value) || sent.includes(Buffer.from(`ab:${value}`).toString("base64"))).to.equal(true);
  expect(sent).to.contain("Credential=AKIDEXAMPLE/");
  const { access, refresh } = issued;
  expect(access.filter((token) => sent.includes(token))).to.have.length(2);
  const [newest = "", ...ended] = [...refresh].reverse();
  expect(ended).to.have.length(1);
  const hidden = computed.flatMap(({ path, hidden: parts }) => parts.map((part, i) => [`${path} ${i}`, part]));
  const old = ended.map((token) => ["refresh token that was replaced", token]);
  const gone = Object.fromEntries([...secrets.map(({ path, value }) => [path, value]), ...hidden, ...old]);
  // Held by the key worker: a second copy would be another thread's.
  const held = {
    "newest refresh token": newest,
    ...Object.fromEntries(access.map((token, i) => [`access token ${i}`, token])),
  };
  yield { when: "while unlocked", server, gone, once: held, settles: true };
  await mustLock(server);
  yield { when: "after a lock", server, gone: { ...gone, ...held }, settles: true };
}

/** Another process puts the values: the search is not for what a put leaves. */
async function startWithSecrets(
  upstream: Upstream,
  all: readonly { readonly path: string; readonly value: string; readonly binding: object }[],
): Promise<ServerProcess> {
  const args = ["--broker-port", "0", "--upstream-ca", upstreamTrust([upstream]).upstreamCa];
  const settings = { STRONGROOM_HOME: emptyHome() };
  const first = await startWithCanary(settings, args);
  await mustInit(first, { passphrase });
  for (const { path, value, binding } of all) {
    await mustPut(first, path, { value });
    await bind(first, path, { host: "localhost", port: upstream.port, private: true, ...binding });
  }
  await first.stop();
  const server = await startWithCanary(settings, args);
  await mustUnlock(server, passphrase);
  return server;
}

/** Reads slowly, answers slowly, or both, as the request's path says. */
function respond(req: IncomingMessage, res: ServerResponse): void {
  if (req.url === "/token" || req.url?.startsWith("/app/") === true) return void issue(req, res);
  const isSlow = req.url?.startsWith("/slow") === true;
  const answer = () => void res.end(randomBytes(20_000));
  req.on("end", () => (isSlow ? setTimeout(answer, 20) : answer()));
  if (isSlow) setTimeout(() => req.resume(), 10);
  else req.resume();
}

function issue(req: IncomingMessage, res: ServerResponse): void {
  const [access, refresh] = [random(), random()];
  const isApp = req.url !== "/token";
  issued.access.push(access);
  if (!isApp) issued.refresh.push(refresh);
  const body = isApp
    ? { token: access, expires_at: new Date(Date.now() + 3_600_000).toISOString() }
    : { access_token: access, token_type: "Bearer", expires_in: 3600, refresh_token: refresh };
  req.resume();
  res.writeHead(isApp ? 201 : 200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Every third one is slow, and every fourth client gives up: immediately, in its body, or before the response. */
async function request(agent: Agent | undefined, { port }: Upstream, n: number): Promise<void> {
  if (agent === undefined) throw new Error("there is no session");
  const at = `localhost:${port}`;
  const opened = await openTunnel(agent, at);
  if (typeof opened === "string") throw new Error(opened);
  const socket = await startTls(agent, opened, "localhost", "localhost");
  const body = randomBytes(1000 + ((n * 7919) % 199_000)).toString("latin1");
  const head = `POST /${n % 3 === 0 ? "slow" : "fast"} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  if (n % 4 !== 3) return void (await exchange(socket, head + body));
  const given = [head, head + body.slice(0, body.length / 2), head + body][(n >> 2) % 3] ?? head;
  const ended = exchange(socket, given);
  setTimeout(() => socket.destroy(), n % 7);
  await ended;
}
