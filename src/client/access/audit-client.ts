/** Client methods for the audit log: for the root token, or one that can `audit`. */
import type { AuditCheckpoint, AuditPage, AuditVerdicts } from "../api-types.js";
import { jsonListObject } from "../encode-body.js";
import { type CallOptions, queryOf } from "../request.js";
import type { Requester } from "../requester.js";

export type AuditOptions = CallOptions & {
  /** Only records with a higher number; default: from the oldest. */
  readonly after?: number | undefined;
  /** At most 1000; default: 100. */
  readonly limit?: number | undefined;
};

export class Audit {
  readonly #requester: Requester;

  /** Use `client.audit`. */
  constructor(requester: Requester) {
    this.#requester = requester;
  }

  /**
   * Returns records, oldest first, and in `head` where the log ends.
   * @throws StrongroomError FORBIDDEN; NOT_FOUND when the server keeps no audit log; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { records, head } = await client.audit.read({ after: 4711 });
   * ```
   */
  async read({ after, limit, ...options }: AuditOptions = {}): Promise<AuditPage> {
    return this.#requester.send("GET", `/v1/audit${queryOf({ after, limit })}`, options);
  }

  /**
   * Returns for each checkpoint whether this vault has made it.
   * @throws StrongroomError VAULT_LOCKED; FORBIDDEN; INTERNAL; BAD_REQUEST for more than 1000
   * @example
   * ```ts
   * const { verdicts } = await client.audit.verify([{ log, seq, time, chain, key, mac }]);
   * ```
   */
  async verify(checkpoints: readonly AuditCheckpoint[], options: CallOptions = {}): Promise<AuditVerdicts> {
    const known = checkpoints.map(({ log, seq, time, chain, key, mac }) => ({ log, seq, time, chain, key, mac }));
    const body = jsonListObject("checkpoints", known);
    return this.#requester.send("POST", "/v1/audit/verify", options, { body, readsOnly: true });
  }
}
