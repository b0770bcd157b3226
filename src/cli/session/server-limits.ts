/** Owns how much the server takes, as it publishes it: what is refused before it is sent, and in a trial. */
import type { StrongroomClient } from "../../client/client.js";
import { CommandFailure } from "./exit-codes.js";
import { isObject } from "./json-values.js";

/** Sizes in bytes of UTF-8. */
export type Limits = { readonly value: number; readonly description: number; readonly types: readonly unknown[] };

/** @throws CommandFailure unexpected */
export async function limitsOf(client: StrongroomClient): Promise<Limits> {
  const document = await client.openapi();
  const fields = member(document, "components", "schemas", "PutRequest", "properties");
  const { maxLength: value } = member(fields, "value");
  const { maxLength: description } = member(fields, "description");
  const { enum: types } = member(fields, "type");
  if (typeof value !== "number" || typeof description !== "number" || !Array.isArray(types)) {
    throw new CommandFailure("unexpected", "the server's contract does not say its limits: is it of another version?");
  }
  return { value, description, types };
}

function member(object: object, ...names: readonly string[]): { readonly [name: string]: unknown } {
  let at: { readonly [name: string]: unknown } = { ...object };
  for (const name of names) {
    const next = at[name];
    at = isObject(next) ? next : {};
  }
  return at;
}

/** What is wrong with a value of so many bytes, and its description; null when nothing is. */
export function problemOfSizes(bytes: number, description: string | undefined, limits: Limits): string | null {
  const tooLarge = problemOfSize(bytes, limits);
  if (tooLarge !== null) return `the value ${tooLarge}`;
  if (Buffer.byteLength(description ?? "") <= limits.description) return null;
  return `the description has more than ${limits.description} bytes`;
}

export function problemOfSize(bytes: number, { value }: Pick<Limits, "value">): string | null {
  return bytes > value ? `has ${bytes} bytes, and the server takes at most ${value}` : null;
}

/** What a trial is to refuse, as the server would. @throws CommandFailure usage, unexpected */
export async function refuseTooLarge(client: StrongroomClient, bytes: number, description?: string): Promise<void> {
  const problem = problemOfSizes(bytes, description, await limitsOf(client));
  if (problem !== null) throw new CommandFailure("usage", problem);
}
