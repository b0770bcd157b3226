/** Row of the table of operations. */
import type { ErrorCode } from "../errors.js";
import type { Schema } from "./json-schema.js";
import type { ResponseName } from "./named-schemas.js";

type Tag = "vault" | "secrets" | "server" | "tokens" | "audit";

export type Operation = {
  readonly id: string;
  readonly method: "get" | "put" | "post" | "delete";
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description: string;
  /** No token is required. */
  readonly open?: true;
  /** No token is forbidden to ask. */
  readonly anyToken?: true;
  readonly parameters?: readonly string[];
  readonly body?: { readonly schema: string; readonly example: Schema };
  /** `type`: of the content; JSON by default. */
  readonly response: {
    readonly type?: string;
    readonly schema: ResponseName | Schema;
    readonly description: string;
    readonly example: Schema | string;
  };
  /** With status 503, the response has the same body; in which case. */
  readonly unready?: string;
  /** The response has the secret's tag as an `ETag` header. */
  readonly hasTag?: true;
  /** There is a 304, too. */
  readonly mayBeUnchanged?: true;
  /** Besides those of every operation that needs a token. */
  readonly errors: readonly ErrorCode[];
};
