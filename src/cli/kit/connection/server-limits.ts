/** Size limits that the server publishes, to check a value before it is sent and in a dry run. */
import type { StrongroomClient } from "../../../client/client.js";
import { CommandFailure } from "../errors.js";
import { isObject } from "../prompts/input.js";

/** Sizes in bytes of UTF-8. */
export type Limits = { readonly value: number; readonly description: number; readonly types: readonly unknown[] };

/** @throws CommandFailure unexpected */
export async function fetchLimits(client: StrongroomClient): Promise<Limits> {
  const document = await client.openapi();
  const fields = member(document, "components", "schemas", "PutRequest", "properties");
  const { maxLength: value } = member(fields, "value");
  const { maxLength: description } = member(fields, "description");
  const { enum: types } = member(fields, "type");
  if (typeof value !== "number" || typeof description !== "number" || !Array.isArray(types)) {
    throw new CommandFailure("unexpected", "the server does not publish its limits: it may be another version");
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

/** Returns what is wrong with the size of a value or its description, or null. */
export function problemOfSizes(bytes: number, description: string | undefined, limits: Limits): string | null {
  const tooLarge = problemOfSize(bytes, limits);
  if (tooLarge !== null) return `the value ${tooLarge}`;
  if (Buffer.byteLength(description ?? "") <= limits.description) return null;
  return `the description has more than ${limits.description} bytes`;
}

export function problemOfSize(bytes: number, { value }: Pick<Limits, "value">): string | null {
  return bytes > value ? `is ${grouped(bytes)} bytes; the limit is ${grouped(value)}` : null;
}

/** 1,048,576, whatever the locale. */
function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/** Refuses in a dry run what the server would refuse. @throws CommandFailure usage, unexpected */
export async function refuseTooLarge(client: StrongroomClient, bytes: number, description?: string): Promise<void> {
  const problem = problemOfSizes(bytes, description, await fetchLimits(client));
  if (problem !== null) throw new CommandFailure("usage", problem);
}
