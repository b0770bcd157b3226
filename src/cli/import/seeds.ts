/** Seeds of one-time codes in other programs' files: what `strongroom otp` computes from, or the reason why it cannot. */
import { utf8, withScratch } from "../../../workers/memory.js";
import { oneTimeCode } from "../../../workers/transit/one-time-code.js";

/** `value`: what is stored. `codes`: equal for seeds that always give the same codes. */
type Seed = { readonly value: string; readonly codes: string };

type UnusableSeed = { readonly problem: string };

/** Returns whether a value says of itself that it is a seed, of any kind. */
export function isSeedUrl(value: string): boolean {
  return /^\s*otpauth(?:-migration)?:\/\//i.test(value);
}

/** Reads a field that a program uses for seeds alone, where a secret in base32 may be short. */
export function readSeed(field: string): Seed | UnusableSeed {
  const value = field.trim();
  const found = computed(value);
  if (found !== null) return found;
  const url = `otpauth://totp/?secret=${encodeURIComponent(value.replace(/[\s-]/g, ""))}`;
  return computed(url) ?? { problem: "it is no seed of one-time codes" };
}

/** Two seeds that agree at all of these times, in milliseconds, have the same secret and settings. */
const times = [59_000, 1_111_111_109_000, 1_234_567_890_000, 20_000_000_000_000];

function computed(value: string): Seed | UnusableSeed | null {
  const found = times.map((time) => withScratch(() => oneTimeCode(utf8(value), time)));
  const codes: string[] = [];
  for (const code of found) {
    if (code === null || "problem" in code) return code;
    codes.push(`${code.code}/${code.period}`);
  }
  return { value, codes: codes.join(" ") };
}

/** A seed in several fields. `algorithm`, `digits` and `period` are as the program writes them; empty is its default. */
export type SeedFields = {
  readonly secret: string;
  readonly encoding: keyof typeof decoders;
  readonly algorithm: string;
  readonly digits: string;
  readonly period: string;
  readonly isSteam?: boolean;
};

const decoders = {
  utf8: (text: string) => Buffer.from(text, "utf8"),
  hex: (text: string) => (/^(?:[0-9a-f]{2})*$/i.test(text) ? Buffer.from(text, "hex") : null),
  base64: (text: string) => (/^[A-Za-z0-9+/]*={0,2}$/.test(text) ? Buffer.from(text, "base64") : null),
  base32: null,
} as const;

/** Returns the otpauth URL of a seed in several fields; its codes may still be impossible to compute. */
export function seedUrl({ secret, encoding, algorithm, digits, period, isSteam }: SeedFields): string | UnusableSeed {
  const decode = decoders[encoding];
  const bytes = decode?.(encoding === "utf8" ? secret : secret.replace(/\s/g, ""));
  if (bytes === null) return { problem: `its secret is not in ${encoding}` };
  const hash = /^(?:hmac[-_]?)?sha[-_]?(\d+)$/i.exec(algorithm)?.[1];
  const members = {
    secret: bytes === undefined ? secret.replace(/[\s=-]/g, "") : base32(bytes),
    algorithm: hash === undefined ? algorithm : `SHA${hash}`,
    ...{ digits, period, encoder: isSteam ? "steam" : "" },
  };
  const query = Object.entries(members).filter(([, value]) => value !== "");
  return `otpauth://totp/?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** RFC 4648 section 6, without padding. */
function base32(bytes: Uint8Array): string {
  let [text, bits, held] = ["", 0, 0];
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    for (held += 8; held >= 5; held -= 5) text += alphabet[(bits >> (held - 5)) & 31] ?? "";
  }
  return held === 0 ? text : text + (alphabet[(bits << (5 - held)) & 31] ?? "");
}
