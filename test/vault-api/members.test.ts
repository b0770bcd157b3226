/** Every parameter and member that OpenBao's API documents name: honoured, harmless, or refused with a reason. */
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import { passphrase } from "../../tools/rig/server.js";
import { startVaultServer, type VaultResponse, vault } from "../../tools/rig/vault-client.js";
import { type Fate, type VaultOperation, vaultMembers } from "../../workers/vault-members.js";

type Body = Readonly<Record<string, unknown>>;

type Row = {
  /** A request that asks for nothing more than it must, and its status. */
  readonly request: readonly [method: string, path: string, body?: Body];
  readonly status: number;
  /** Names in the documents for this operation, besides those in its path: website/content/docs/api of OpenBao 2.6. */
  readonly documented: string;
  /** For each honoured member, a value that shows it: by the status of the response, or its text. */
  readonly honoured?: Readonly<Record<string, readonly [value: unknown, seen: number | RegExp]>>;
};

const plain = Buffer.from("attack at dawn").toString("base64");
const old = "vault:v1:AAAA";
const metadata = {
  documented: "max_versions cas_required delete_version_after custom_metadata",
  honoured: {
    max_versions: ["many", 400],
    cas_required: ["maybe", 400],
    delete_version_after: ["soon", 400],
    custom_metadata: ["text", 400],
  },
} as const;
const versions = { documented: "versions", honoured: { versions: ["x", 400] } } as const;
const writing = {
  documented: "options data",
  honoured: { data: ["text", 400], options: [{ cas: 99 }, 400] },
} as const;
const batch = { batch_input: ["text", 400], reference: ["r", 200] } as const;
const partial = { partial_failure_response_code: [700, 200] } as const; // counts in batches: see below
const signing = {
  ...batch,
  input: ["%", 400],
  algorithm: ["md5", 400],
  hash_algorithm: ["md5", 400],
  prehashed: ["maybe", 400],
  signature_algorithm: ["x", 400],
  marshaling_algorithm: ["x", 400],
  salt_length: ["x", 400],
} as const;
const page = {
  documented: "after limit",
  honoured: { list: ["T", 200], after: ["a", /"keys":\["b","c"\]/], limit: ["2", /"keys":\["a","b"\]/] },
} as const;
const readsNothing = { documented: "" } as const;

const rows: Readonly<Record<VaultOperation, Row>> = {
  readSecret: {
    ...{ request: ["GET", "m/data/a"], status: 200, documented: "version" },
    honoured: { version: ["2", 404] },
  },
  writeSecret: { request: ["POST", "m/data/w", { data: {} }], status: 200, ...writing },
  patchSecret: { request: ["PATCH", "m/data/w", { data: {} }], status: 200, ...writing },
  deleteSecret: { request: ["DELETE", "m/data/none"], status: 204, ...readsNothing },
  readSubkeys: {
    ...{ request: ["GET", "m/subkeys/a"], status: 200, documented: "version depth" },
    honoured: { version: ["2", 404], depth: ["1", /"subkeys":\{"in":null\}/] },
  },
  deleteVersions: { request: ["POST", "m/delete/none", { versions: [1] }], status: 204, ...versions },
  undeleteVersions: { request: ["POST", "m/undelete/none", { versions: [1] }], status: 204, ...versions },
  destroyVersions: { request: ["PUT", "m/destroy/none", { versions: [1] }], status: 204, ...versions },
  readMetadata: { request: ["GET", "m/metadata/a"], status: 200, ...readsNothing },
  writeMetadata: { request: ["POST", "m/metadata/w", {}], status: 204, ...metadata },
  patchMetadata: { request: ["PATCH", "m/metadata/w", {}], status: 204, ...metadata },
  deleteMetadata: { request: ["DELETE", "m/metadata/none"], status: 204, ...readsNothing },
  readConfig: { request: ["GET", "m/config"], status: 200, ...readsNothing },
  writeConfig: {
    ...{ request: ["POST", "m/config", {}], status: 204 },
    documented: "max_versions cas_required delete_version_after",
  },
  listKeys: { request: ["LIST", "n/metadata"], status: 200, ...page },

  createTransitKey: {
    ...{ request: ["POST", "t/keys/made", {}], status: 200 },
    documented:
      "convergent_encryption derived exportable allow_plaintext_backup type key_size auto_rotate_period external_key_ref",
    honoured: { type: ["chacha20-poly1305", 400], exportable: ["maybe", 400] },
  },
  showTransitKey: { request: ["GET", "t/keys/a"], status: 200, ...readsNothing },
  deleteTransitKey: { request: ["DELETE", "t/keys/none"], status: 400, ...readsNothing },
  rotateTransitKey: { request: ["POST", "t/keys/b/rotate", {}], status: 200, documented: "external_key_ref" },
  configureTransitKey: {
    ...{ request: ["POST", "t/keys/a/config", {}], status: 200 },
    documented:
      "min_decryption_version min_encryption_version deletion_allowed exportable allow_plaintext_backup auto_rotate_period",
    honoured: {
      min_decryption_version: [9, 400],
      deletion_allowed: ["maybe", 400],
      exportable: [true, 400],
    },
  },
  exportTransitKey: { request: ["GET", "t/export/public-key/c"], status: 200, documented: "format" },
  encrypt: {
    ...{ request: ["POST", "t/encrypt/a", { plaintext: plain }], status: 200 },
    documented:
      "plaintext associated_data context key_version nonce reference batch_input type convergent_encryption partial_failure_response_code",
    honoured: { ...batch, ...partial, plaintext: ["%", 400], associated_data: ["%", 400], key_version: [9, 400] },
  },
  decrypt: {
    ...{ request: ["POST", "t/decrypt/a", { ciphertext: old }], status: 400 },
    documented: "ciphertext associated_data context nonce reference batch_input partial_failure_response_code",
    honoured: {
      ...batch,
      reference: ["r", 400],
      partial_failure_response_code: [207, 400],
      ciphertext: ["x", /no prefix/],
      associated_data: ["%", /associated_data must be/],
    },
  },
  rewrap: {
    ...{ request: ["POST", "t/rewrap/a", { ciphertext: old }], status: 400 },
    documented: "ciphertext context key_version nonce reference batch_input",
    honoured: {
      ...batch,
      reference: ["r", 400],
      ciphertext: ["x", /no prefix/],
      associated_data: ["%", /associated_data must be/],
      key_version: [9, 400],
    },
  },
  dataKey: {
    ...{ request: ["POST", "t/datakey/plaintext/a", {}], status: 200, documented: "context nonce bits" },
    honoured: { bits: [7, 400], associated_data: ["%", 400], key_version: [9, 400] },
  },
  random: {
    ...{ request: ["POST", "t/random", {}], status: 200, documented: "bytes format source" },
    honoured: { bytes: [0, 400], format: ["x", 400] },
  },
  hash: {
    ...{ request: ["POST", "t/hash", { input: plain }], status: 200, documented: "algorithm input format" },
    honoured: { algorithm: ["md5", 400], input: ["%", 400], format: ["x", 400] },
  },
  hmac: {
    ...{ request: ["POST", "t/hmac/a", { input: plain }], status: 200 },
    documented: "key_version algorithm input reference batch_input",
    honoured: { ...batch, input: ["%", 400], algorithm: ["md5", 400], key_version: [9, 400] },
  },
  sign: {
    ...{ request: ["POST", "t/sign/c", { input: plain }], status: 200 },
    documented:
      "key_version hash_algorithm input reference batch_input context prehashed signature_algorithm marshaling_algorithm salt_length",
    honoured: { ...signing, key_version: [9, 400] },
  },
  verify: {
    ...{ request: ["POST", "t/verify/c", { input: plain, signature: old }], status: 200 },
    documented:
      "hash_algorithm input signature hmac reference batch_input context prehashed signature_algorithm marshaling_algorithm salt_length",
    honoured: { ...signing, signature: ["x", /no prefix/], hmac: [old, /one of/] },
  },
  listTransitKeys: { request: ["LIST", "l/keys"], status: 200, ...page },

  createToken: {
    ...{ request: ["POST", "auth/token/create", {}], status: 200 },
    documented:
      "id role_name policies meta no_parent no_default_policy renewable lease ttl type explicit_max_ttl display_name num_uses period entity_alias",
    honoured: {
      policies: ["none", 400],
      ttl: ["soon", 400],
      lease: ["soon", 400],
      explicit_max_ttl: ["soon", 400],
      display_name: ["named", /"accessor":"root\.named-/],
      meta: [{ a: "b" }, /"warnings":\["meta is not kept/],
    },
  },
  lookUpSelf: { request: ["GET", "auth/token/lookup-self"], status: 200, ...readsNothing },
  lookUpByGet: { request: ["GET", "auth/token/lookup"], status: 200, documented: "token" },
  lookUp: {
    ...{ request: ["POST", "auth/token/lookup", {}], status: 200, documented: "token" },
    honoured: { token: ["none", 403] },
  },
  renewSelf: {
    ...{ request: ["POST", "auth/token/renew-self", {}], status: 200, documented: "increment" },
    honoured: { increment: ["soon", 400] },
  },
  renew: {
    ...{ request: ["POST", "auth/token/renew", {}], status: 400, documented: "token increment" },
    honoured: { token: ["none", /token not found/], increment: ["soon", /increment must be/] },
  },
  revokeSelf: { request: ["POST", "auth/token/revoke-self", {}], status: 400, ...readsNothing },
  revoke: {
    ...{ request: ["POST", "auth/token/revoke", {}], status: 400, documented: "token" },
    honoured: { token: ["none", 204] },
  },
  logIn: {
    ...{ request: ["POST", "auth/approle/login", {}], status: 400, documented: "role_id secret_id" },
    honoured: { role_id: ["r", /missing secret_id/], secret_id: ["s", /missing role_id/] },
  },

  health: {
    ...{ request: ["GET", "sys/health"], status: 200 },
    documented: "standbyok activecode standbycode sealedcode uninitcode",
    honoured: { activecode: ["299", 299], sealedcode: ["299", 200], uninitcode: ["299", 200] },
  },
  sealStatus: { request: ["GET", "sys/seal-status"], status: 200, ...readsNothing },
  leader: { request: ["GET", "sys/leader"], status: 200, ...readsNothing },
  initialized: { request: ["GET", "sys/init"], status: 200, ...readsNothing },
  lock: { request: ["GET", "sys/seal"], status: 405, ...readsNothing },
  unlock: {
    ...{ request: ["POST", "sys/unseal", { key: passphrase }], status: 200, documented: "key reset migrate" },
    honoured: { key: [5, 400] },
  },
  listMounts: { request: ["GET", "sys/mounts"], status: 200, ...readsNothing },
  showMount: { request: ["GET", "sys/mounts/m"], status: 200, ...readsNothing },
  enableMount: {
    ...{ request: ["POST", "sys/mounts/m", { type: "kv-v2" }], status: 204 },
    documented: "type description config options local seal_wrap external_entropy_access",
    honoured: {
      type: ["kv", 400],
      config: [{ listing_visibility: "unauth" }, 400],
      options: [{ version: "1" }, 400],
    },
  },
  disableMount: { request: ["DELETE", "sys/mounts/m"], status: 400, ...readsNothing },
  showTuning: { request: ["GET", "sys/mounts/m/tune"], status: 200, ...readsNothing },
  tuneMount: { request: ["POST", "sys/mounts/m/tune", {}], status: 400, ...readsNothing },
  listMountsForUi: { request: ["GET", "sys/internal/ui/mounts"], status: 200, ...readsNothing },
  showMountOfPath: { request: ["GET", "sys/internal/ui/mounts/m/a"], status: 200, ...readsNothing },
};

/** Refused whatever their body says. */
const refusedAnyway: readonly VaultOperation[] = ["tuneMount"];

/** Endpoints of OpenBao's documents for the engines and systems of this port that it does not serve. */
const notServed: Readonly<Record<string, string>> = {
  DELETE: `
    auth/approle/role/x auth/token/roles/x sys/audit/x sys/auth/x sys/config/auditing/request-headers/x
    sys/config/cors sys/config/ui/headers/x sys/external-keys/configs/x/keys/x
    sys/external-keys/configs/x/keys/x/grants/x sys/external-keys/configs/x sys/generate-recovery-token/attempt
    sys/generate-root-token/attempt sys/generate-root/attempt sys/loggers sys/loggers/x sys/namespaces/x
    sys/namespaces/x/delete-sealed sys/plugins/catalog/x/x sys/policies/acl/x sys/policies/password/x sys/policy/x
    sys/quotas/rate-limit/x sys/raw/x sys/rekey-recovery-key/init sys/rekey-recovery-key/verify sys/rekey/backup
    sys/rekey/init sys/rekey/recovery-key-backup sys/rekey/verify sys/rotate/root/backup sys/rotate/root/init
    sys/rotation/root/verify sys/workflows/manage/x transit/keys/x/soft-delete auth/approle/role/x/bind-secret-id
    auth/approle/role/x/period auth/approle/role/x/policies auth/approle/role/x/secret-id-bound-cidrs
    auth/approle/role/x/secret-id-num-uses auth/approle/role/x/secret-id-ttl auth/approle/role/x/token-bound-cidrs
    auth/approle/role/x/token-max-ttl auth/approle/role/x/token-ttl`,
  GET: `
    auth/approle/role/x auth/approle/role/x/role-id auth/token/roles/x sys/audit sys/auth sys/auth/x sys/auth/x/tune
    sys/config/auditing/request-headers sys/config/auditing/request-headers/x sys/config/cors
    sys/config/state/sanitized sys/config/ui/headers/x sys/external-keys/configs/x/keys/x
    sys/external-keys/configs/x sys/generate-recovery-token/attempt sys/generate-root-token/attempt
    sys/generate-root/attempt sys/ha-status sys/host-info sys/in-flight-req sys/internal/counters/entities
    sys/internal/counters/tokens sys/internal/inspect/request/root sys/internal/inspect/router/accessor
    sys/internal/inspect/router/root sys/internal/inspect/router/storage sys/internal/inspect/router/uuid
    sys/internal/specs/openapi sys/internal/ui/namespaces sys/internal/ui/resultant-acl sys/key-status sys/leases
    sys/leases/count sys/locked-users sys/loggers sys/loggers/x sys/metrics sys/monitor sys/namespaces/x
    sys/namespaces/x/seal-status sys/plugins/catalog sys/plugins/catalog/x/x sys/policies/acl/x
    sys/policies/password/x sys/policies/password/x/generate sys/policies/password sys/policy sys/policy/x sys/pprof
    sys/pprof/allocs sys/pprof/block sys/pprof/cmdline sys/pprof/goroutine sys/pprof/heap sys/pprof/mutex
    sys/pprof/profile sys/pprof/symbol sys/pprof/threadcreate sys/pprof/trace sys/quotas/config
    sys/quotas/rate-limit/x sys/raw/x sys/rekey-recovery-key/init sys/rekey-recovery-key/verify sys/rekey/backup
    sys/rekey/init sys/rekey/recovery-key-backup sys/rekey/verify sys/remount/status/x sys/rotate/root/backup
    sys/rotate/root/init sys/rotate/root/verify sys/rotate/config sys/rotate/keyring/config
    sys/storage/raft/autopilot/configuration sys/storage/raft/autopilot/state sys/storage/raft/configuration
    sys/storage/raft/snapshot sys/workflows/manage/x transit/backup/x transit/byok-export/x/x transit/cache-config
    transit/config/keys transit/wrapping_key auth/approle/role/x/bind-secret-id auth/approle/role/x/period
    auth/approle/role/x/policies auth/approle/role/x/secret-id-bound-cidrs auth/approle/role/x/secret-id-num-uses
    auth/approle/role/x/secret-id-ttl auth/approle/role/x/token-bound-cidrs auth/approle/role/x/token-max-ttl
    auth/approle/role/x/token-ttl`,
  POST: `
    auth/approle/role/x/bind-secret-id auth/approle/role/x/period auth/approle/role/x/policies
    auth/approle/role/x/secret-id-bound-cidrs auth/approle/role/x/secret-id-num-uses
    auth/approle/role/x/secret-id-ttl auth/approle/role/x/token-bound-cidrs auth/approle/role/x/token-max-ttl
    auth/approle/role/x/token-ttl auth/approle/role/x auth/approle/role/x/custom-secret-id
    auth/approle/role/x/role-id auth/approle/role/x/secret-id auth/approle/role/x/secret-id-accessor/destroy
    auth/approle/role/x/secret-id-accessor/lookup auth/approle/role/x/secret-id/destroy
    auth/approle/role/x/secret-id/lookup auth/approle/tidy/secret-id auth/token/create-orphan auth/token/create/x
    auth/token/lookup-accessor auth/token/renew-accessor auth/token/revoke-accessor auth/token/revoke-orphan
    auth/token/roles/x auth/token/tidy sys/audit-hash/x sys/audit/x sys/auth/x sys/auth/x/tune sys/capabilities
    sys/capabilities-accessor sys/capabilities-self sys/config/auditing/request-headers/x sys/config/cors
    sys/config/ui/headers/x sys/generate-recovery-token/attempt sys/generate-recovery-token/update
    sys/generate-root-token/attempt sys/generate-root-token/update sys/generate-root/attempt
    sys/generate-root/update sys/init sys/leases/lookup sys/leases/renew sys/leases/revoke sys/leases/revoke-force/x
    sys/leases/revoke-prefix/x sys/leases/tidy sys/locked-users/x/unlock/x sys/loggers sys/loggers/x
    sys/mfa/validate sys/namespaces/x sys/plugins/catalog/x/x sys/plugins/reload/backend sys/policies/acl/x
    sys/policies/password/x sys/policy/x sys/quotas/config sys/quotas/rate-limit/x sys/raw/x
    sys/rekey-recovery-key/init sys/rekey-recovery-key/update sys/rekey-recovery-key/verify sys/rekey/init
    sys/rekey/update sys/rekey/verify sys/remount sys/rotate sys/rotate/root/init sys/rotate/root/update
    sys/rotate/root/verify sys/rotate/config sys/rotate/keyring sys/rotate/keyring/config sys/rotate/root
    sys/step-down sys/storage/raft/autopilot/configuration sys/storage/raft/bootstrap sys/storage/raft/demote
    sys/storage/raft/join sys/storage/raft/promote sys/storage/raft/remove-peer sys/storage/raft/snapshot
    sys/storage/raft/snapshot-force sys/tools/hash sys/tools/random sys/workflows/execute/x sys/workflows/manage/x
    sys/workflows/trace/x sys/workflows/unauthed-execute/x sys/wrapping/lookup sys/wrapping/rewrap
    sys/wrapping/unwrap sys/wrapping/wrap transit/cache-config transit/config/keys transit/keys/x/csr
    transit/keys/x/import transit/keys/x/import_version transit/keys/x/set-certificate
    transit/keys/x/soft-delete-restore transit/keys/x/trim transit/restore`,
  LIST: `
    secret/detailed-metadata/x auth/approle/role auth/approle/role/x/secret-id auth/token/accessors auth/token/roles
    sys/config/ui/headers sys/external-keys/configs sys/external-keys/configs/x/keys
    sys/external-keys/configs/x/keys/x/grants sys/leases/lookup/x sys/namespaces sys/plugins/catalog/auth
    sys/plugins/catalog/database sys/plugins/catalog/secret sys/policies/acl sys/policies/acl/x
    sys/policies/detailed/acl sys/policies/detailed/acl/x sys/policies/password sys/policy/x sys/quotas/rate-limit
    sys/raw/x sys/version-history sys/workflows/manage sys/workflows/manage/x`,
  PATCH: `
    sys/namespaces/x sys/policies/acl/x`,
  PUT: `
    sys/namespaces/x/seal sys/namespaces/x/unseal`,
};

describe("members of Vault's API", () => {
  const server = shared(async () => {
    const started = await startVaultServer({ idleTimeoutMs: 0 });
    const must = async (path: string, body: object = {}) =>
      expect((await vault(started, "POST", path, { body })).status, path).to.be.below(300);
    for (const name of ["a", "b", "c"]) {
      await must(`m/data/${name}`, { data: { in: { side: 1 } } });
      await must(`n/data/${name}`, { data: {} });
    }
    for (const name of ["a", "b", "made"]) await must(`t/keys/${name}`);
    await must("t/keys/c", { type: "ecdsa-p256" });
    for (const name of ["a", "b", "c"]) await must(`l/keys/${name}`);
    return started;
  });

  /** Sends the row's request with one more value, in its query or its body. */
  function ask({ request: [method, path, body] }: Row, name?: string, value?: unknown): Promise<VaultResponse> {
    if (body !== undefined) return vault(server(), method, path, { body: { ...body, ...(name && { [name]: value }) } });
    if (name === "list" && method === "LIST") return vault(server(), "GET", `${path}?list=${value}`);
    return vault(server(), method, name === undefined ? path : `${path}?${name}=${encodeURIComponent(String(value))}`);
  }

  const samples = { text: "x", flag: "T", number: "7", json: "x" } as const;

  async function mustBeTreated(row: Row, name: string, fate: Fate): Promise<void> {
    if (fate === "honoured") {
      const [value, seen] = row.honoured?.[name] ?? [];
      const { status, text } = await ask(row, name, value);
      if (typeof seen === "number") return void expect(status, `${name}: ${text}`).to.equal(seen);
      return void expect(text, name).to.match(seen ?? /no value shows that it is honoured/);
    }
    if (fate === "harmless") return void expect((await ask(row, name, "1")).status, name).to.equal(row.status);
    const asking = typeof fate.neutral === "string" && name !== "list" ? samples[fate.neutral] : "x";
    const { status, json } = await ask(row, name, asking);
    expect(status, name).to.equal(400);
    expect(json.errors[0]).to.match(new RegExp(`^${name} .`));
    expect((await ask(row, name, "")).status, `${name}, empty`).to.equal(row.status);
  }

  for (const [operation, row] of Object.entries(rows) as [VaultOperation, Row][]) {
    it(`documented members of ${operation} are honoured, harmless or refused`, async () => {
      const { status, text } = await ask(row);
      expect(status, text).to.equal(row.status);
      const known = vaultMembers[operation];
      expect([...known.keys()]).to.include.members(row.documented.split(" ").filter((name) => name !== ""));
      if (refusedAnyway.includes(operation)) return;
      for (const [name, fate] of known) await mustBeTreated(row, name, fate);
    });
  }

  for (const [method, paths] of Object.entries(notServed)) {
    it(`endpoints of Vault that are not served say so for ${method}`, async () => {
      for (const path of paths.trim().split(/\s+/)) {
        const { status, json } = await vault(server(), method, path, method === "POST" ? { body: {} } : {});
        expect(status, `${method} ${path}`).to.be.oneOf([400, 404, 405]);
        expect(json.errors, `${method} ${path}`).to.have.lengthOf(1);
        expect(json.errors[0], `${method} ${path}`).to.match(/^unsupported (?:path|operation): ./);
      }
    });
  }

  it("a member that no document names changes nothing", async () => {
    for (const [operation, row] of Object.entries(rows))
      expect((await ask(row, "of_nobody", "x")).status, operation).to.equal(row.status);
  });

  it("a member that counts for one input is refused next to a batch", async () => {
    const batch_input = [{ plaintext: plain }];
    for (const beside of [{ key_version: 1 }, { associated_data: plain }, { context: plain }, { derived: true }]) {
      const { status, json } = await vault(server(), "POST", "t/encrypt/a", { body: { batch_input, ...beside } });
      expect(status, JSON.stringify(beside)).to.equal(400);
      expect(json.errors[0]).to.match(new RegExp(`^${Object.keys(beside)[0]} `));
    }
    const body = { batch_input, partial_failure_response_code: 700 };
    expect((await vault(server(), "POST", "t/encrypt/a", { body })).status).to.equal(400);
    const neutral = {
      batch_input,
      key_version: 0,
      context: "",
      plaintext: plain,
      partial_failure_response_code: "207",
    };
    expect((await vault(server(), "POST", "t/encrypt/a", { body: neutral })).status).to.equal(200);
  });
});

describe("Go's leniency", () => {
  const server = shared(() => startVaultServer({ idleTimeoutMs: 0 }));
  const post = (path: string, body: object) => vault(server(), "POST", path, { body });

  it("every form of a boolean in Go is accepted, and an empty text as its default", async () => {
    for (const exportable of ["1", "t", "T", "true", "TRUE", "True", true, 1]) {
      const name = `keys/on-${typeof exportable}-${exportable}`;
      expect((await post(`t/${name}`, { exportable })).json.data.exportable, String(exportable)).to.equal(true);
    }
    for (const exportable of ["0", "f", "F", "false", "FALSE", "False", false, 0, "", null]) {
      const name = `keys/off-${typeof exportable}-${exportable || "empty"}`;
      expect((await post(`t/${name}`, { exportable })).json.data.exportable, String(exportable)).to.equal(false);
    }
    for (const exportable of ["yes", "tRUE", "2", 2, {}, []])
      expect((await post("t/keys/never", { exportable })).status, String(exportable)).to.equal(400);
  });

  it("?list is accepted in every form of true, and refused with another value", async () => {
    await post("secret/data/x/y", { data: {} });
    for (const list of ["1", "t", "T", "true", "TRUE", "True"])
      expect((await vault(server(), "GET", `secret/metadata/x?list=${list}`)).json.data.keys).to.deep.equal(["y"]);
    const unlimited = await vault(server(), "LIST", "secret/metadata/x?after=&limit=-1");
    expect(unlimited.json.data.keys).to.deep.equal(["y"]);
    expect((await vault(server(), "LIST", "secret/metadata/x?limit=many")).status).to.equal(400);
    expect((await vault(server(), "GET", "secret/metadata/x/y?list=false")).json.data.current_version).to.equal(1);
    for (const list of ["yes", "tRUE", "2"])
      expect((await vault(server(), "GET", `secret/metadata/x?list=${list}`)).status, list).to.equal(400);
    expect((await vault(server(), "GET", "secret/metadata/x?scan=true")).status).to.equal(400);
    expect((await vault(server(), "GET", "secret/data/x/y?version=")).status).to.equal(200);
  });

  it("durations are accepted with fractions, small units and days", async () => {
    const after = async (delete_version_after: unknown) => {
      const { status } = await post("secret/metadata/d", { delete_version_after });
      return status === 204
        ? (await vault(server(), "GET", "secret/metadata/d")).json.data.delete_version_after
        : status;
    };
    const durations: (readonly [unknown, string | number])[] = [
      ...([
        ["1.5h", "1h30m0s"],
        ["90m", "1h30m0s"],
        [90, "1m30s"],
        ["90", "1m30s"],
        ["2d", "48h0m0s"],
      ] as const),
      ...([
        ["1h0m0s", "1h0m0s"],
        ["1500ms", "1s"],
        ["1ms", "1s"],
        ["+5s", "5s"],
        ["", "0s"],
        [null, "0s"],
      ] as const),
      ...([
        ["-5s", 400],
        ["5 s", 400],
        ["5", "5s"],
        ["h", 400],
        ["1e3s", 400],
        [true, 400],
        [["5s"], 400],
      ] as const),
    ];
    for (const [sent, shown] of durations) expect(await after(sent), JSON.stringify(sent)).to.equal(shown);
  });

  it("base64 is accepted with line breaks and with bits after the last byte", async () => {
    await post("t/keys/lines", {});
    const long = "x".repeat(90);
    const text = Buffer.from(long).toString("base64");
    const texts = [
      `${text.slice(0, 76)}\n${text.slice(76)}\n`,
      `${text.slice(0, 76)}\r\n${text.slice(76)}`,
      `\n${text}`,
    ];
    for (const plaintext of texts) {
      const { ciphertext } = (await post("t/encrypt/lines", { plaintext })).json.data;
      const broken = `${ciphertext.slice(0, 40)}\n${ciphertext.slice(40)}\n`;
      expect((await post("t/decrypt/lines", { ciphertext: broken })).json.data.plaintext).to.equal(text);
    }
    const { ciphertext } = (await post("t/encrypt/lines", { plaintext: "eB==" })).json.data; // x, and four more bits
    expect((await post("t/decrypt/lines", { ciphertext })).json.data.plaintext).to.equal("eA==");
    for (const plaintext of ["e", "e A==", "eA=", "eA==\t"])
      expect((await post("t/encrypt/lines", { plaintext })).status, JSON.stringify(plaintext)).to.equal(400);
  });

  it("an empty text is accepted as the default of each choice and number", async () => {
    await post("t/keys/p", { type: "ecdsa-p256", key_size: "", auto_rotate_period: "" });
    const input = plain;
    const empty = {
      hash_algorithm: "",
      marshaling_algorithm: "",
      signature_algorithm: "",
      salt_length: "",
      key_version: "",
    };
    const { signature } = (await post("t/sign/p", { input, prehashed: "", ...empty })).json.data;
    const { key_version: _, ...options } = empty;
    const verified = await post("t/verify/p", { input, signature, hmac: "", ...options });
    expect(verified.json.data.valid).to.equal(true);
    expect((await post("t/random", { bytes: "", format: "" })).json.data.random_bytes).to.have.length(44);
    expect((await post("t/keys/q", { type: "" })).json.data.type).to.equal("aes256-gcm96");
    const metadata = { max_versions: "", cas_required: "", delete_version_after: "" };
    expect((await post("secret/metadata/e", metadata)).status).to.equal(204);
  });
});
