/** What an endpoint is, and what all of them work with. */
import type { Request, Response } from "express";
import type { ClientTokens } from "../access/client-tokens.js";
import type { Credentials } from "../access/credentials.js";
import type { Lockout } from "../access/lockout.js";
import type { RootRotation } from "../access/root-rotation.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Log } from "../log.js";
import type { Vault } from "../vault/vault.js";

export type Service = {
  readonly vault: Vault;
  readonly log: Log;
  readonly credentials: Credentials;
  readonly tokens: ClientTokens;
  /** Null: there is none. */
  readonly audit: AuditLog | null;
  readonly rootRotation: RootRotation;
  readonly passphraseLockout: Lockout;
  readonly maxBodyBytes: number;
  readonly maxBatchBytes: number;
  /** The OpenAPI document. */
  readonly contract: Uint8Array;
  /** Returns the metrics in Prometheus' text format. */
  readonly scrape: () => Promise<string>;
  /** The program's. */
  readonly version: string;
  /** The listening port. */
  readonly port: number;
  readonly isShuttingDown: () => boolean;
  /** Begins the shutdown, after the response was sent. */
  readonly shutDown: () => void;
};

/** `rest`: the raw target behind the root of the resource and a slash. */
export type Endpoint = (service: Service, req: Request, res: Response, rest: string) => Promise<void> | void;
