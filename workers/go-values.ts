/** Truth values and durations in the forms that programs written in Go accept: what Vault's clients send. */

const flags: ReadonlyMap<string, boolean> = new Map<string, boolean>([
  ...["1", "t", "T", "true", "TRUE", "True"].map((text) => [text, true] as const),
  ...["", "0", "f", "F", "false", "FALSE", "False"].map((text) => [text, false] as const),
]);

/** Reads what strconv.ParseBool accepts, from a text, a number or a truth value; an empty text is false. Null: invalid. */
export function goFlag(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  const isText = typeof value === "string" || typeof value === "number";
  return isText ? (flags.get(String(value)) ?? null) : null;
}

const unitSeconds: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-9],
  ["us", 1e-6],
  ["µs", 1e-6],
  ["μs", 1e-6],
  ["ms", 1e-3],
  ["s", 1],
  ["m", 60],
  ["h", 3600],
  ["d", 24 * 3600],
]);

const duration = /^[-+]?(?:(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:ns|[uµμm]s|[smhd]))+$/;

/**
 * Returns the seconds of a number, or of a duration such as `1h30m` or `1.5h`, with days (`d`) as Vault has them; an empty text
 * is 0. Null: invalid.
 */
export function goSeconds(value: unknown): number | null {
  if (typeof value !== "string" && typeof value !== "number") return null;
  const text = String(value);
  if (text === "") return 0;
  if (/^[-+]?\d{1,15}$/.test(text)) return Number(text);
  if (text.length > 64 || !duration.test(text)) return null;
  let seconds = 0;
  for (const [, number = "", unit = ""] of text.matchAll(/([\d.]+)(\D+)/g)) {
    seconds += Number(number) * (unitSeconds.get(unit) ?? 0);
  }
  return text.startsWith("-") ? -seconds : seconds;
}

/** Returns whole seconds, never more than were asked for, and never 0 for a part of a second. */
export function wholeSeconds(seconds: number): number {
  return seconds > 0 ? Math.max(1, Math.floor(seconds)) : Math.ceil(seconds);
}
