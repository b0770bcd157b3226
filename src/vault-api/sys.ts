/** Endpoints of `sys`: the state of the server, seal and unseal. */
import { change } from "../audit/record.js";
import { VaultError } from "../errors.js";
import { passphrase } from "../http/body.js";
import { type BasicCall, endpoint, none, type Whole } from "../http/endpoint.js";
import { parseQuery } from "../http/routes.js";
import { nothing, plain } from "./response.js";

/** Clients decide by it which endpoints there are. */
const vaultVersion = "1.15.0+strongroom";

/** Parameters that replace a status, by the state; each is a number from 200 to 599. */
const codes = { uninitialized: "uninitcode", sealed: "sealedcode", active: "activecode" } as const;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const sysRows = [
  endpoint({
    operation: "health", at: "GET /v1/sys/health", scope: "open", guard: "none", audit: null,
    subject: none, body: null, conditional: false, query: readCodes, reads: false,
    handle: health,
  }),
  endpoint({
    operation: "sealStatus", at: "GET /v1/sys/seal-status", scope: "open", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: false,
    handle: sealStatus,
  }),
  endpoint({
    operation: "leader", at: "GET /v1/sys/leader", scope: "open", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: false,
    handle: () => plain({ ha_enabled: false, is_self: false, leader_address: "", leader_cluster_address: "" }),
  }),
  endpoint({
    operation: "initialized", at: "GET /v1/sys/init", scope: "open", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: false,
    handle: ({ vault }) => plain({ initialized: vault.report.state().initialized }),
  }),
  endpoint({
    operation: "lock", at: "POST /v1/sys/seal", scope: "lock", guard: "none", audit: change("lock"),
    subject: none, body: null, conditional: false, reads: false,
    async handle({ vault }) {
      await vault.lock();
      return nothing;
    },
  }),
  endpoint({
    operation: "unlock", at: "POST /v1/sys/unseal", scope: "unlock", guard: "passphrase", audit: change("unlock"),
    subject: none, body: passphrase, conditional: false, reads: false,
    async handle(call) {
      await call.vault.unlock(call.body, call.permit, true);
      return sealStatus(call);
    },
  }),
];

function sealStatus({ vault }: BasicCall): Whole {
  const { initialized, locked: sealed } = vault.report.state();
  const shares = { t: 1, n: 1, progress: 0, nonce: "" }; // one passphrase, or one key
  const seal = { type: "shamir", initialized, sealed, ...shares, migration: false, recovery_seal: false };
  const server = { version: vaultVersion, build_date: "", cluster_name: "strongroom", storage_type: "strongroom" };
  return plain({ ...seal, ...server });
}

type Codes = Readonly<Record<keyof typeof codes, number | null>>;

function health({ vault, query }: BasicCall & { readonly query: Codes }): Whole {
  const { initialized, locked } = vault.report.state();
  const unlocked = () => (locked ? (query.sealed ?? 503) : (query.active ?? 200));
  const status = initialized ? unlocked() : (query.uninitialized ?? 501);
  const replication = { replication_performance_mode: "disabled", replication_dr_mode: "disabled" };
  const server = { server_time_utc: Math.trunc(Date.now() / 1000), version: vaultVersion, cluster_name: "strongroom" };
  const state = { initialized, sealed: locked, standby: false, performance_standby: false };
  return plain({ ...state, ...replication, ...server }, status);
}

/** @throws VaultError BAD_REQUEST */
function readCodes(query: string): Codes {
  const { uninitialized, sealed, active } = codes;
  return {
    uninitialized: statusIn(query, uninitialized),
    sealed: statusIn(query, sealed),
    active: statusIn(query, active),
  };
}

function statusIn(query: string, name: string): number | null {
  const text = parseQuery(query, [name]).get(name) ?? "";
  if (text === "") return null;
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a status from 200 to 599`);
}
