/** A request of a load, as both load programs send it. */

export type Request = {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly body?: string;
  /** Instead of a body: a put of a value of this many bytes. */
  readonly valueBytes?: number;
};

export function bodyOf({ body, valueBytes }: Request): string | undefined {
  if (valueBytes === undefined) return body;
  return JSON.stringify({ value: "v".repeat(valueBytes), type: "api-key" });
}
