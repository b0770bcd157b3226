/** Judges of tokens that end while their requests are on the way: every request, by a client token and by the root token. */
import { expect } from "chai";
import { scopes } from "../../src/contract/names.js";
import { type Json, mustCreateToken, send } from "../../tools/rig/test-client.js";
import type { HeldFiles } from "./held-files.js";
import { endsServer, type Judge, Problems, requestName } from "./request-judges.js";
import { ask, beginBody, prepare, type Rig, rootRotation, settle } from "./request-rig.js";
import { type ApiRequest, isTokenless, nativeRequests, passphraseChange, there } from "./requests.js";

const lifetimeMs = 60_000;

/** Tokens that may send the request: the root token, and a client token with all scopes that ends at the next `endTokens`. */
async function passingTokens({ server }: Rig, { may }: ApiRequest, name: string): Promise<readonly string[]> {
  if (may === "root" || may === "page") return [server.token];
  const { token } = await mustCreateToken(server, { name, can: [...scopes], ttlSeconds: lifetimeMs / 1000 });
  return [token, server.token];
}

/** Lets client tokens expire, and replaces the root token. */
async function endTokens(rig: Rig): Promise<void> {
  rig.clock.advance(lifetimeMs);
  const rotation = nativeRequests.find(({ at }) => at === rootRotation) ?? expect.fail("the table has no rotation");
  expect((await ask(rig, rotation)).status).to.equal(200);
}

/** A request whose token ends while the body arrives is refused, and changes nothing. */
export const judgeLateBodies: Judge = async (rig, requests) => {
  const problems = new Problems();
  for (const sample of requests.filter((one) => one.body !== null && !isTokenless(one))) {
    const begun: Awaited<ReturnType<typeof beginBody>>[] = [];
    for (const token of await passingTokens(rig, sample, `late-${Math.random()}`))
      begun.push(await beginBody(rig, sample, token));
    const counts = await countChanges(rig, sample);
    await endTokens(rig);
    for (const { sendBody } of begun)
      problems.refuse(sample, "a body after its token's end", await sendBody(), "UNAUTHORIZED");
    judgeChanges(sample, counts, await countChanges(rig, sample), 0, problems);
  }
  return problems.found;
};

/**
 * A token is checked again when its request's turn comes, or before the response leaves: it ends while storage makes the
 * request wait, or an earlier one of its kind. `files`: the rig's.
 */
export async function judgeEnds(
  rig: Rig,
  requests: readonly ApiRequest[],
  files: HeldFiles,
): Promise<readonly string[]> {
  const problems = new Problems();
  for (const sample of requests.filter(mayWait)) {
    const counts = await countChanges(rig, sample);
    const { verdicts, held } = await sendHeld(rig, sample, files);
    for (const n of held)
      problems.refuse(sample, `token ${n} ended`, verdicts[n] ?? expect.fail("no verdict"), "UNAUTHORIZED");
    if (held.length < verdicts.length && mustWait(sample))
      problems.found.push(`${requestName(sample)}: ${held.length} of ${verdicts.length} waited`);
    judgeChanges(sample, counts, await countChanges(rig, sample), 1, problems); // by the request that was sent before
    if (isChange(sample)) await prepare(rig.server, sample);
  }
  return problems.found;
}

/** Sends a request with each token while storage stands still, lets these end, and returns which of them waited. */
async function sendHeld(rig: Rig, sample: ApiRequest, { hold }: HeldFiles) {
  const tokens = await passingTokens(rig, sample, `end-${Math.random()}`);
  const isRotation = sample.at === rootRotation; // ends the token itself
  const { reached, release } = hold(isRotation ? "/.tmp-" : "/vault/");
  const before = isChange(sample) ? ask(rig, sample.isChecked ? passphraseChange : sample) : null;
  await settle(rig);
  if (before !== null && sample.isChecked) await reached; // derivations take long, and the change must be there first
  const waiting = new Set(tokens.keys());
  const late = tokens.map((token, n) =>
    ask(rig, sample, { token, ...otherValue(sample) }).finally(() => waiting.delete(n)),
  );
  await settle(rig);
  if (!isRotation) await endTokens(rig);
  await settle(rig);
  const held = [...waiting];
  release();
  await before;
  return { verdicts: await Promise.all(late), held };
}

const isChange = ({ record, method }: ApiRequest) => record !== null && method !== "GET" && method !== "LIST";

function mayWait(sample: ApiRequest): boolean {
  return !isTokenless(sample) && !endsServer(sample) && sample.status < 400 && !excused.has(sample.at);
}

/** The state of a stream is sent before it ends; a revocation takes effect at once, and waits only to be stored. */
const excused = new Set(["GET /v1/vitals", "POST /v1/auth/token/revoke-self", "POST /v1/auth/token/revoke"]);

/** All changes but those of the memory alone, or of a vault that is unlocked already. */
function mustWait(sample: ApiRequest): boolean {
  return sample.isPath || (isChange(sample) && !/^POST \S+\/(?:unseal|review)$/.test(sample.at));
}

/** Versions of the secret and the key, and numbers of other things: each change adds at most one to each. */
async function countChanges({ server }: Rig, sample: ApiRequest): Promise<readonly number[]> {
  if (!isChange(sample)) return [];
  const get = async (path: string) => (await send(server, { path: `/v1/${path}` })).json;
  const { versions } = await get(`versions/${there.secret}`);
  const { latestVersion = 0 } = await get(`transit/keys/${there.key}`);
  const { secretCount, keys } = await get("status");
  const lists = [await get("tokens"), await get("transit/keys"), await get("uses"), await get("keys")];
  const newest = (versions as readonly Json[] | undefined)?.[0]?.["version"] ?? 0;
  const lengths = lists.map((list) =>
    Math.max(...Object.values(list).map((one) => (Array.isArray(one) ? one.length : 0))),
  );
  return [newest, latestVersion, secretCount, keys, ...lengths].map((count) => Number(count ?? 0));
}

/** Between two counts, at most so many changes of a kind were made. */
function judgeChanges(
  sample: ApiRequest,
  before: readonly number[],
  after: readonly number[],
  most: number,
  { found }: Problems,
): void {
  if (after.some((count, n) => count > (before[n] ?? 0) + most))
    found.push(`${requestName(sample)}: changes what it refuses, ${before} before, ${after} after`);
}

/** In a body with a value, another one: a write of what is there changes nothing. */
function otherValue({ body }: ApiRequest): { readonly body?: string } {
  const text = JSON.stringify(body);
  return text.includes('"third"') ? { body: text.replace('"third"', '"late"') } : {};
}
