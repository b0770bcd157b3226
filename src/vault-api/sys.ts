/** Handlers of `sys`: the state of the server, seal and unseal, and the mounts. */
import type { Request, Response } from "express";
import { VaultError } from "../errors.js";
import type { Service } from "../http/endpoint.js";
import { queryOf } from "../http/request.js";
import { sendPlain } from "./response.js";

/** Clients decide by it which endpoints there are. */
const vaultVersion = "1.15.0+strongroom";

/** Parameters that replace a status; each is a number from 100 to 599. */
const codes = { uninitialized: "uninitcode", sealed: "sealedcode" } as const;

export function health({ vault }: Service, req: Request, res: Response): void {
  const { initialized, locked } = vault.report.state();
  const codeOf = (name: (typeof codes)[keyof typeof codes], usual: number) => statusCode(req, name) ?? usual;
  const status = initialized ? (locked ? codeOf(codes.sealed, 503) : 200) : codeOf(codes.uninitialized, 501);
  const replication = { replication_performance_mode: "disabled", replication_dr_mode: "disabled" };
  const server = { server_time_utc: Math.trunc(Date.now() / 1000), version: vaultVersion, cluster_name: "strongroom" };
  const state = { initialized, sealed: locked, standby: false, performance_standby: false };
  sendPlain(res, { ...state, ...replication, ...server }, status);
}

function statusCode(req: Request, name: string): number | null {
  const text = queryOf(req, [name]).get(name);
  if (text === undefined) return null;
  if (/^[1-5]\d\d$/.test(text)) return Number(text);
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a status from 100 to 599`);
}
