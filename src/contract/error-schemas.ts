/** Schemas of error responses. */
import { endReasons, statusOf } from "../errors.js";
import { credentials } from "../observer.js";
import { count, object, type Schema, text } from "./json-schema.js";

const index = {
  ...count("Which operation of a batch was refused, counted from 0."),
  examples: [0],
};
export const error = text("What was wrong and what to do, for people.", "the vault is locked: unlock it first");

export const errorSchemas = {
  Refusal: object(
    "Why a request was refused.",
    {
      error,
      code: { ...text("Error code, for programs.", "VAULT_LOCKED"), enum: codesBetween(400, 499) },
      credential: {
        ...text("With UNAUTHORIZED: which credential was wrong.", "token"),
        enum: credentials,
      },
      reason: {
        ...text("With UNAUTHORIZED, for 30 days: why a client token is no longer valid.", "expired"),
        enum: endReasons,
      },
      index,
    },
    ["credential", "reason", "index"],
  ),
  Failure: object(
    "Why the server failed.",
    {
      error,
      code: { ...text("Error code, for programs.", "UNAVAILABLE"), enum: codesBetween(500, 599) },
      requestId: text("Identifies the request in the server's log.", "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11", {
        format: "uuid",
      }),
      index,
    },
    ["index"],
  ),
} satisfies Readonly<Record<string, Schema>>;

function codesBetween(low: number, high: number): string[] {
  return Object.entries(statusOf).flatMap(([code, status]) => (status >= low && status <= high ? [code] : []));
}
