/** Handlers of `sys`: the state of the server, seal and unseal. */
import type { Request, Response } from "express";
import { VaultError } from "../errors.js";
import { withPassphrase } from "../http/by-hand.js";
import type { Service } from "../http/endpoint.js";
import { queryOf } from "../http/request.js";
import { sendNothing, sendPlain } from "./response.js";

/** Clients decide by it which endpoints there are. */
const vaultVersion = "1.15.0+strongroom";

/** Parameters that replace a status; each is a number from 200 to 599. */
const codes = { uninitialized: "uninitcode", sealed: "sealedcode", active: "activecode" } as const;

export function initialized({ vault }: Service, _req: Request, res: Response): void {
  sendPlain(res, { initialized: vault.report.state().initialized });
}

export function leader(_service: Service, _req: Request, res: Response): void {
  sendPlain(res, { ha_enabled: false, is_self: false, leader_address: "", leader_cluster_address: "" });
}

export function sealStatus({ vault }: Service, _req: Request, res: Response): void {
  const { initialized: exists, locked } = vault.report.state();
  const shares = { t: 1, n: 1, progress: 0, nonce: "" }; // one passphrase, or one key
  const seal = {
    type: "shamir",
    initialized: exists,
    sealed: locked,
    ...shares,
    migration: false,
    recovery_seal: false,
  };
  sendPlain(res, {
    ...seal,
    version: vaultVersion,
    build_date: "",
    cluster_name: "strongroom",
    storage_type: "strongroom",
  });
}

export async function seal({ vault }: Service, _req: Request, res: Response): Promise<void> {
  await vault.lock();
  sendNothing(res);
}

/** Takes the passphrase, or the text of a key, as `key`. */
export const unseal = withPassphrase(
  ({ vault }, body, permit) => vault.unlock(body, permit, true),
  (service, res) => sealStatus(service, res.req, res),
);

export function health({ vault }: Service, req: Request, res: Response): void {
  const { initialized, locked } = vault.report.state();
  const codeOf = (name: (typeof codes)[keyof typeof codes], usual: number) => statusCode(req, name) ?? usual;
  const unlocked = () => (locked ? codeOf(codes.sealed, 503) : codeOf(codes.active, 200));
  const status = initialized ? unlocked() : codeOf(codes.uninitialized, 501);
  const replication = { replication_performance_mode: "disabled", replication_dr_mode: "disabled" };
  const server = { server_time_utc: Math.trunc(Date.now() / 1000), version: vaultVersion, cluster_name: "strongroom" };
  const state = { initialized, sealed: locked, standby: false, performance_standby: false };
  sendPlain(res, { ...state, ...replication, ...server }, status);
}

function statusCode(req: Request, name: string): number | null {
  const text = queryOf(req, [name]).get(name) ?? "";
  if (text === "") return null;
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a status from 200 to 599`);
}
