/**
 * One request for each endpoint of both ports, with what the documents promise about it: who may send it, while which state,
 * what it records, and what its response carries. Written by hand from the contract: it is the oracle of the tests that send
 * every request.
 */
import type { Scope } from "../../src/access/scopes.js";
import { scopes } from "../../src/contract/names.js";
import { passphrase } from "../../tools/rig/server.js";

export type Port = "native" | "vault";

/**
 * Who may send it. `open`: no token is read; `login`: its body has what is exchanged for a token; `any`: every token; `some`: one
 * with a scope; `page`: the root token and the review page's; a list: any of these scopes.
 */
export type May = "open" | "login" | "any" | "some" | "root" | "page" | readonly Scope[];

/** `unlocked`: refused while the vault is not; `none`: works in every state. */
export type Needs = "unlocked" | "none";

/** Secret in the response: `value`: that of a secret; `token`: a new token or the text of a key. */
export type Carries = "value" | "token" | null;

export type ApiRequest = {
  readonly port: Port;
  /** As in the endpoint's row. */
  readonly at: string;
  readonly method: string;
  /** Without `/v1/`. `{subject}` stands for the subject, here and in the body. */
  readonly target: string;
  /** A secret's path, a key's or token's name that exists in the prepared vault. Null: the endpoint has no subject. */
  readonly subject: string | null;
  readonly body: object | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly may: May;
  readonly needs: Needs;
  /** Whether its body has a passphrase, or a key's text, of which wrong ones count. */
  readonly isChecked: boolean;
  /** The event that it leaves in the audit log; null: none. */
  readonly record: string | null;
  /** Other members of the record, or of each of them: `id` and `tag` stand for what the server makes. */
  readonly recorded: object | readonly object[];
  readonly carries: Carries;
  /** The status of the sample. */
  readonly status: number;
  /** The status without a vault, where the request works in every state. */
  readonly bare: number;
  /** The state that it leaves. Null: the state before. */
  readonly leaves: "locked" | "unlocked" | null;
  /** Whether a client token with limited paths must reach the subject. */
  readonly isPath: boolean;
};

/** Whether no token is read. */
export const isTokenless = ({ may }: ApiRequest) => may === "open" || may === "login";

/** Returns the scopes that do not permit a request. */
export function otherScopes(may: May): readonly Scope[] {
  if (may === "any" || may === "some") return [];
  return typeof may === "object" ? scopes.filter((scope) => !may.includes(scope)) : scopes;
}

/** Returns the name of the token that has these scopes together. */
export const jointName = (joint: readonly Scope[]) => `joint-${joint.join("-")}`;
export const isJoint = (name: string) => name.startsWith("joint-");

type Given = Partial<Omit<ApiRequest, "port" | "at" | "method" | "may">>;

/** The subjects of the prepared vault. */
export const there = {
  secret: "app/a",
  seed: "app/seed",
  trashed: "app/trashed",
  key: "app/key",
  signer: "app/sign",
  token: "ci",
} as const;

/** A message, in base64. */
export const message = "aGVsbG8=";
const anyUse: readonly Scope[] = ["encrypt", "decrypt", "sign"];

function makeRequest(port: Port, at: string, may: May, given: Given = {}): ApiRequest {
  const [method = "", pattern = ""] = at.split(" ");
  const { subject = null, status = 200 } = given;
  return {
    ...{ port, at, method, target: pattern.replace(/^\/v1\//, "").replace(/:\w+/, "{subject}"), subject, may },
    ...{ body: null, headers: {}, needs: "unlocked", isChecked: false, record: null, recorded: {}, carries: null },
    ...{ status, bare: status, leaves: null, isPath: subject !== null },
    ...given,
  };
}

const native = (at: string, may: May, given?: Given) => makeRequest("native", at, may, given);
const vault = (at: string, may: May, given?: Given) => makeRequest("vault", at, may, given);

const always = { needs: "none" } as const;
const onSecret = { subject: there.secret } as const;
const onKey = { subject: there.key } as const;
const onToken = { subject: there.token, isPath: false } as const;
const withPassphrase = { needs: "none", isChecked: true, body: { passphrase } } as const;
const newPassphrase = { passphrase, newPassphrase: passphrase };
const checkpoint = { log: "", seq: 1, time: "", chain: "", key: "", mac: "" };
const batch = { operations: [{ get: "{subject}" }, { copy: "{subject}", to: "app/copy" }] };
const tagged = { etag: "tag" };
/** The secrets of the prepared vault. */
const ofAll = { prefix: "", count: 4 };
const inBatch = { requestId: "id", batch: true, path: there.secret };
const ofBatch = [
  { ...inBatch, event: "get" },
  { ...inBatch, event: "copy", to: "app/copy" },
];
const checkKey = Buffer.alloc(32).toString("base64");

// biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
export const nativeRequests: readonly ApiRequest[] = [
  native("GET /v1/status", "open", always),
  native("GET /v1/openapi.json", "any", always),
  native("GET /v1/metrics", ["metrics"], always),
  native("GET /v1/vitals", ["metrics"], { ...always, target: "vitals?lines=1" }),
  native("POST /v1/review", "root", { record: "review" }),
  native("POST /v1/review/token", "login", { ...always, body: { code: "missing" }, status: 401 }),
  native("GET /v1/review", "page", always),
  native("POST /v1/review/storm", "page", { ...withPassphrase, needs: "unlocked", record: "review-storm" }),
  native("POST /v1/shutdown", "root", { ...always, record: "shutdown" }),
  native("POST /v1/snapshot", "root", { ...always, record: "snapshot", bare: 400 }),

  native("POST /v1/init", "root", { ...always, body: { passphrase }, record: "init", status: 409, bare: 200 }),
  native("POST /v1/unlock", ["unlock"], { ...withPassphrase, record: "unlock", bare: 400, leaves: "unlocked" }),
  native("POST /v1/lock", ["lock"], { ...always, record: "lock", leaves: "locked" }),

  native("POST /v1/passphrase", "root", { ...withPassphrase, body: newPassphrase, record: "passphrase", bare: 400 }),
  native("POST /v1/rotate", "root", { ...withPassphrase, body: { passphrase, keys: [] }, record: "rotate", bare: 400 }),
  native("GET /v1/keys", "root", { ...always, bare: 400 }),
  native("POST /v1/keys", "root", { ...withPassphrase, body: { passphrase, label: "new" }, record: "key-create", recorded: { name: "id", kind: "key", label: "new" }, carries: "token", bare: 400 }),
  native("DELETE /v1/keys/:id", "root", { subject: "missing", isPath: false, record: "key-delete", status: 404 }),

  native("GET /v1/audit", ["audit"], always),
  native("POST /v1/audit/verify", ["audit"], { body: { checkpoints: [checkpoint] } }),

  native("GET /v1/tokens", "root", always),
  native("POST /v1/tokens", "root", { body: { name: "new" }, record: "token-create", recorded: { name: "new" }, carries: "token" }),
  native("GET /v1/tokens/self", "any", always),
  native("POST /v1/tokens/:name", "root", { ...onToken, body: {}, record: "token-rotate", recorded: { name: "ci" }, carries: "token" }),
  native("POST /v1/tokens/root", "root", { ...always, body: {}, record: "token-rotate", recorded: { name: "root" }, carries: "token" }),
  native("DELETE /v1/tokens/:name", "root", { ...onToken, ...always, record: "token-revoke", recorded: { name: "ci" }, bare: 404 }),

  native("GET /v1/secrets", ["list"], { record: "list", recorded: ofAll }),
  native("GET /v1/secrets?background", ["list"], { target: "secrets?background=true", record: "list", recorded: ofAll }),
  native("GET /v1/secrets/", ["list"], { record: "list", recorded: ofAll }),
  native("GET /v1/secrets/?background", ["list"], { target: "secrets/?background=true", record: "list", recorded: ofAll }),
  native("GET /v1/secrets/:path", ["get"], { ...onSecret, record: "get", recorded: tagged, carries: "value" }),
  native("PUT /v1/secrets/:path", ["put"], { ...onSecret, body: { value: "third" }, record: "put", recorded: tagged }),
  native("DELETE /v1/secrets/:path", ["delete"], { ...onSecret, record: "delete" }),
  native("PATCH /v1/metadata/:path", ["put"], { ...onSecret, body: { type: "password" }, record: "metadata", recorded: tagged }),
  native("GET /v1/versions/:path", ["list"], { ...onSecret, record: "versions" }),
  native("GET /v1/versions/:path?version", ["get"], { ...onSecret, target: "versions/{subject}?version=1", record: "get-version", recorded: { version: 1 }, carries: "value" }),
  native("POST /v1/versions/:path", ["put"], { ...onSecret, body: { version: 1 }, record: "undo", recorded: tagged }),
  native("DELETE /v1/versions/:path", ["delete"], { ...onSecret, record: "prune" }),
  native("DELETE /v1/versions/:path?version", ["delete"], { ...onSecret, target: "versions/{subject}?version=1", record: "destroy", recorded: { version: 1 } }),
  native("GET /v1/trash", ["list"], { record: "list-trash", recorded: { prefix: "", count: 1 } }),
  native("POST /v1/trash/:path", ["delete"], { ...onSecret, record: "trash" }),
  native("POST /v1/untrash/:path", ["put"], { subject: there.trashed, record: "untrash" }),
  native("DELETE /v1/trash/:path", ["delete"], { subject: there.trashed, record: "destroy" }),
  native("POST /v1/batch", ["get", "put", "delete"], { ...onSecret, isPath: false, body: batch, record: "copy", recorded: ofBatch, carries: "value" }),
  native("POST /v1/check", ["get"], { body: { key: checkKey }, record: "check", recorded: { prefix: "", count: 5 } }),

  native("GET /v1/transit/keys", anyUse),
  native("POST /v1/transit/keys/:name", "root", { subject: "app/new", body: {}, record: "key-change" }),
  native("GET /v1/transit/keys/:name", anyUse, onKey),
  native("DELETE /v1/transit/keys/:name", "root", { ...onKey, record: "key-change" }),
  native("POST /v1/transit/keys/:name/rotate", "root", { ...onKey, body: {}, record: "key-change" }),
  native("POST /v1/transit/keys/:name/config", "root", { ...onKey, body: { deletionAllowed: true }, record: "key-change" }),
  native("GET /v1/transit/export/:name", "root", { ...onKey, record: "key-export" }),
  native("POST /v1/transit/encrypt/:name", ["encrypt"], { ...onKey, body: { plaintext: message }, record: "encrypt" }),
  native("POST /v1/transit/decrypt/:name", ["decrypt"], { ...onKey, body: { batch: [] }, record: "decrypt" }),
  native("POST /v1/transit/unwrap/:name", ["decrypt"], { ...onKey, body: { batch: [] }, record: "decrypt" }),
  native("POST /v1/transit/rewrap/:name", anyUse, { ...onKey, body: { batch: [] }, record: "rewrap" }),
  native("POST /v1/transit/sign/:name", ["sign"], { subject: there.signer, body: { input: message }, record: "sign" }),
  native("POST /v1/transit/verify/:name", anyUse, { ...onKey, body: { batch: [] }, record: "verify" }),
  native("POST /v1/transit/hmac/:name", ["sign"], { ...onKey, body: { input: message }, record: "hmac" }),
  native("POST /v1/transit/datakey/:name", ["encrypt"], { ...onKey, body: {}, record: "datakey" }),
  native("POST /v1/transit/random", anyUse, { body: {} }),
  native("POST /v1/otp/:path", ["use"], { subject: there.seed, record: "otp" }),

  native("GET /v1/uses", "root"),
  native("GET /v1/uses/:path", "root", { ...onSecret }),
  native("PUT /v1/uses/:path", "root", { ...onSecret, body: { host: "b.example" }, record: "use-change" }),
  native("POST /v1/uses/:path", "root", { ...onSecret, target: "uses/{subject}?host=a.example", body: { deviceCode: "code" }, record: "use-login", status: 400 }),
  native("DELETE /v1/uses/:path", "root", { ...onSecret, target: "uses/{subject}?host=a.example", record: "use-change" }),
  native("POST /v1/agents", "root", { body: {}, record: "token-create", recorded: { name: "agent-id" }, carries: "token" }),
  native("GET /v1/broker", ["use"]),
  native("GET /v1/approvals", "root", always),
  native("POST /v1/approvals/:id", "root", { ...withPassphrase, subject: "missing", isPath: false, body: { approve: false }, record: "approve", status: 404 }),
];

const written = { data: { value: "third" } };

// biome-ignore format: as above
export const vaultRequests: readonly ApiRequest[] = [
  vault("GET /v1/sys/health", "open", { ...always, target: "sys/health?sealedcode=200" }),
  vault("GET /v1/sys/seal-status", "open", always),
  vault("GET /v1/sys/leader", "open", always),
  vault("GET /v1/sys/init", "open", always),
  vault("POST /v1/sys/seal", ["lock"], { ...always, record: "lock", status: 204, leaves: "locked" }),
  vault("POST /v1/sys/unseal", ["unlock"], { ...withPassphrase, body: { key: passphrase }, record: "unlock", bare: 400, leaves: "unlocked" }),
  vault("GET /v1/sys/mounts", "some"),
  vault("GET /v1/sys/mounts/:name", "some", { subject: "secret", isPath: false }),
  vault("POST /v1/sys/mounts/:name", "root", { subject: "other", isPath: false, body: { type: "kv-v2" }, status: 204 }),
  vault("DELETE /v1/sys/mounts/:name", "root", { subject: "other", isPath: false, status: 400 }),
  vault("GET /v1/sys/mounts/:name/tune", "some", { subject: "secret", isPath: false }),
  vault("POST /v1/sys/mounts/:name/tune", "root", { subject: "secret", isPath: false, status: 400 }),
  vault("GET /v1/sys/internal/ui/mounts", "some"),
  vault("GET /v1/sys/internal/ui/mounts/:path", "some", { subject: "secret/app", isPath: false }),

  vault("GET /v1/*/data/:path", ["get"], { ...onSecret, record: "get", carries: "value" }),
  vault("POST /v1/*/data/:path", ["put"], { ...onSecret, body: written, record: "put" }),
  vault("PATCH /v1/*/data/:path", ["put"], { subject: "app/json", body: written, record: "put" }),
  vault("DELETE /v1/*/data/:path", ["delete"], { ...onSecret, record: "delete", status: 204 }),
  vault("GET /v1/*/subkeys/:path", ["get"], { subject: "app/json", record: "get" }),
  vault("POST /v1/*/delete/:path", ["delete"], { ...onSecret, body: { versions: [1] }, record: "delete", status: 204 }),
  vault("POST /v1/*/undelete/:path", ["put"], { ...onSecret, body: { versions: [1] }, record: "undelete", status: 204 }),
  vault("POST /v1/*/destroy/:path", ["delete"], { ...onSecret, body: { versions: [1] }, record: "destroy", status: 204 }),
  vault("GET /v1/*/metadata/:path", ["list"], { ...onSecret, record: "versions" }),
  vault("POST /v1/*/metadata/:path", ["put"], { ...onSecret, body: { max_versions: 3 }, record: "metadata", status: 204 }),
  vault("PATCH /v1/*/metadata/:path", ["put"], { ...onSecret, body: { max_versions: 3 }, record: "metadata", status: 204 }),
  vault("DELETE /v1/*/metadata/:path", ["delete"], { ...onSecret, record: "trash", status: 204 }),
  vault("GET /v1/*/config", "some", always),
  vault("POST /v1/*/config", "some", { ...always, body: {}, status: 204 }),
  vault("LIST /v1/*/metadata", ["list"], { record: "list", recorded: { prefix: "", count: 2 } }),
  vault("LIST /v1/*/metadata/:path", ["list"], { subject: "app", isPath: false, record: "list", recorded: { prefix: "app/", count: 4 } }),

  vault("GET /v1/auth/token/lookup-self", "any"),
  vault("POST /v1/auth/token/lookup-self", "any", { body: {} }),
  vault("GET /v1/auth/token/lookup", "any"),
  vault("POST /v1/auth/token/lookup", "any", { body: { token: "{own}" } }),
  vault("POST /v1/auth/token/renew-self", "any", { body: {} }),
  vault("POST /v1/auth/token/renew", "any", { body: { token: "{own}" } }),
  vault("POST /v1/auth/token/revoke-self", "any", { body: {}, record: "token-revoke", status: 400 }),
  vault("POST /v1/auth/token/revoke", "any", { body: { token: "{own}" }, record: "token-revoke", status: 400 }),
  vault("POST /v1/auth/token/create", "some", { body: {}, record: "token-create", recorded: { name: "root.token-id" }, carries: "token" }),
  vault("POST /v1/auth/approle/login", "login", { body: { role_id: "root", secret_id: "{own}" }, record: "token-create", recorded: { name: "root.login-id" }, carries: "token" }),

  vault("LIST /v1/*/keys", anyUse),
  vault("POST /v1/*/keys/:name", "root", { subject: "app/new", body: {}, record: "key-change" }),
  vault("GET /v1/*/keys/:name", anyUse, onKey),
  vault("DELETE /v1/*/keys/:name", "root", { ...onKey, record: "key-change", status: 204 }),
  vault("POST /v1/*/keys/:name/rotate", "root", { ...onKey, body: {}, record: "key-change" }),
  vault("POST /v1/*/keys/:name/config", "root", { ...onKey, body: { deletion_allowed: true }, record: "key-change" }),
  vault("GET /v1/*/export/:name", "root", { ...onKey, target: "*/export/encryption-key/{subject}", record: "key-export" }),
  vault("POST /v1/*/encrypt/:name", ["encrypt"], { ...onKey, body: { plaintext: message }, record: "encrypt" }),
  vault("POST /v1/*/decrypt/:name", ["decrypt"], { ...onKey, body: { ciphertext: "vault:v1:AAAA" }, record: "decrypt", status: 400 }),
  vault("POST /v1/*/rewrap/:name", anyUse, { ...onKey, body: { ciphertext: "vault:v1:AAAA" }, record: "rewrap", status: 400 }),
  vault("POST /v1/*/sign/:name", ["sign"], { subject: there.signer, body: { input: message }, record: "sign" }),
  vault("POST /v1/*/verify/:name", anyUse, { ...onKey, body: { input: message, hmac: "vault:v1:AAAA" }, record: "verify" }),
  vault("POST /v1/*/hmac/:name", ["sign"], { ...onKey, body: { input: message }, record: "hmac" }),
  vault("POST /v1/*/datakey/:name", ["encrypt"], { ...onKey, target: "*/datakey/plaintext/{subject}", body: {}, record: "datakey" }),
  vault("POST /v1/*/random", anyUse, { body: {} }),
  vault("POST /v1/*/random/:bytes", anyUse, { subject: "16", isPath: false, body: {} }),
  vault("POST /v1/*/hash", anyUse, { body: { input: message } }),
  vault("POST /v1/*/hash/:algorithm", anyUse, { subject: "sha2-256", isPath: false, body: { input: message } }),
];

export const allRequests: readonly ApiRequest[] = [...nativeRequests, ...vaultRequests];

export function rowAt(at: string, port: Port = "native"): ApiRequest {
  const row = allRequests.find((one) => one.port === port && one.at === at);
  if (row === undefined) throw new Error(`the table has no row for ${at}`);
  return row;
}

/** Returns another form of an endpoint's request: what is not given is as in its row. */
const nativeForm = (at: string, given: Partial<ApiRequest>) => ({ ...rowAt(at), ...given });

/** The second init of a vault, which is refused as the row is. */
export const unforcedInit = nativeForm("POST /v1/init", { body: { passphrase, force: false }, bare: 409 });

export const approval = nativeForm("POST /v1/approvals/:id", { body: { approve: true, passphrase } });

export const passphraseChange = nativeForm("POST /v1/passphrase", {});

/** Makes a new vault in place of the old one. */
export const forcedInit = nativeForm("POST /v1/init", {
  ...{ body: { passphrase, force: true }, status: 200, bare: 200, leaves: "unlocked" },
});

const vaultForm = (at: string, given: Partial<ApiRequest>) => ({ ...rowAt(at, "vault"), ...given });
const batchForm = (...operations: readonly object[]) => nativeForm("POST /v1/batch", { body: { operations } });
const ofPrefix = { subject: there.secret, isPath: false };
const wrongTag = { headers: { "if-match": '"AAAAAAAAAAAAAAAA"' } };
const otherTag = { headers: { "if-none-match": '"AAAAAAAAAAAAAAAA"' } };
const put = { put: "{subject}", value: "third" };

/** Further forms of requests on one thing, by which a response might show another one, or less might be checked. */
// biome-ignore format: as above
export const forms: readonly ApiRequest[] = [
  nativeForm("GET /v1/secrets", { target: "secrets?prefix={subject}", ...ofPrefix }),
  nativeForm("GET /v1/secrets", { target: "secrets?after=b" }),
  nativeForm("GET /v1/trash", { target: "trash?prefix={subject}", ...ofPrefix }),
  nativeForm("POST /v1/check", { body: { prefix: "{subject}" }, ...ofPrefix }),
  nativeForm("GET /v1/secrets/:path", otherTag), nativeForm("PUT /v1/secrets/:path", wrongTag),
  nativeForm("PUT /v1/secrets/:path", { body: { value: 1 } }), nativeForm("DELETE /v1/secrets/:path", wrongTag),
  nativeForm("PATCH /v1/metadata/:path", { body: {} }),
  batchForm({ get: "{subject}" }), batchForm(put), batchForm({ delete: "{subject}" }), batchForm({ trash: "{subject}" }),
  batchForm({ move: "{subject}", to: "app/moved" }), batchForm({ move: "{subject}", to: "{subject}" }),
  batchForm({ move: "app/json", to: "{subject}" }), batchForm({ copy: "{subject}", to: "app/copied" }),
  batchForm({ put: "app/other", value: "1" }, { delete: "{subject}" }),
  nativeForm("POST /v1/transit/decrypt/:name", { body: { ciphertext: "vault:v1:AAAA" } }),
  nativeForm("POST /v1/transit/unwrap/:name", { body: { share: message, wrapped: message } }),
  nativeForm("POST /v1/transit/rewrap/:name", { body: { ciphertext: "vault:v1:AAAA" } }),
  nativeForm("POST /v1/transit/verify/:name", { body: { input: message, hmac: "vault:v1:AAAA" } }),
  nativeForm("POST /v1/tokens/:name", { body: { overlapSeconds: 0 } }),
  vaultForm("GET /v1/*/data/:path", { target: "*/data/{subject}?version=1" }),
  vaultForm("POST /v1/*/data/:path", { body: { ...written, options: { cas: 0 } } }),
  vaultForm("POST /v1/*/destroy/:path", { method: "PUT" }),
  vaultForm("GET /v1/*/metadata/:path", { target: "*/metadata/{subject}?list=true" }),
  vaultForm("LIST /v1/*/keys", { target: "*/keys/{subject}", subject: there.key, isPath: false }),
  vaultForm("POST /v1/auth/approle/login", { body: { role_id: "{subject}", secret_id: "srk_wrong" }, subject: there.token }),
];

/** Requests whose records differ from those of their rows. */
// biome-ignore format: as above
export const recordedForms: readonly ApiRequest[] = [
  nativeForm("GET /v1/secrets/:path", { subject: "app/n", status: 404, carries: null, recorded: {} }),
  nativeForm("GET /v1/secrets", { target: "secrets?prefix=other/", recorded: { prefix: "other/", count: 1 } }),
  nativeForm("GET /v1/secrets", { target: "secrets?prefix=app//a", recorded: { prefix: "", count: 0 } }), // no path begins so
  nativeForm("DELETE /v1/tokens/:name", { subject: `src_${"a".repeat(43)}`, status: 404, recorded: {} }), // a token's text
];

/** Whether a secret, a key or a token is named, which may be there or not. */
export function namesOne({ subject }: ApiRequest): boolean {
  return subject !== null && (subject.startsWith("app") || subject === there.token);
}
