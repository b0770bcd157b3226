/**
 * Seeds of one-time codes in KeePass's strings.
 *
 *   otp                                                    KeePassXC's URL; KeeOtp's members
 *   TimeOtp-Secret, -Secret-Hex, -Secret-Base32, -Secret-Base64, with TimeOtp-Length, -Period, -Algorithm     KeePass
 *   TOTP Seed, with TOTP Settings: 30;6, or 30;S for Steam                                       KeeTrayTOTP, KeePassXC
 *   HmacOtp-Secret…, with HmacOtp-Counter                  KeePass, by a counter: no code can be computed from it
 */
import type { Refused } from "./entry.js";
import { type Field, standardField } from "./items.js";
import { type SeedFields, seedUrl } from "./seeds.js";

const encodings = { "": "utf8", "-Hex": "hex", "-Base32": "base32", "-Base64": "base64" } as const;

type KeePassSeeds = {
  readonly seeds: readonly Field[];
  readonly refused: readonly Refused[];
  /** Strings that are part of a seed, and no fields of their own. */
  readonly used: ReadonlySet<string>;
};

/** Returns the seeds of an entry's strings. `origin` is the entry's. */
export function seedsIn(strings: ReadonlyMap<string, string>, origin: string): KeePassSeeds {
  const [seeds, refused, used]: [Field[], Refused[], Set<string>] = [[], [], new Set()];
  for (const { key, others, parts } of [...timeOtp(strings), ...trayTotp(strings)]) {
    const url = parts === null ? (strings.get(key) ?? "") : seedUrl(parts);
    if (typeof url === "string") seeds.push(standardField("totp", url, key));
    else refused.push({ origin: `${origin}, ${key}`, problem: `no one-time code can be computed: ${url.problem}` });
    for (const name of [key, ...others]) used.add(name);
  }
  const counted = [...strings.keys()].filter((key) => key.startsWith("HmacOtp-") && strings.get(key) !== "");
  for (const key of counted) used.add(key);
  const problem = "it is counter-based (HOTP), and only time-based codes (TOTP) are computed";
  if (counted.length > 0) refused.push({ origin: `${origin}, ${counted.join(", ")}`, problem });
  return { seeds, refused, used };
}

/** `parts`: null for a string that holds the whole seed. */
type SeedString = { readonly key: string; readonly others: readonly string[]; readonly parts: SeedFields | null };

function timeOtp(strings: ReadonlyMap<string, string>): SeedString[] {
  const others = ["TimeOtp-Length", "TimeOtp-Period", "TimeOtp-Algorithm"];
  const [digits = "", period = "", algorithm = ""] = others.map((name) => strings.get(name)?.trim() ?? "");
  return Object.entries(encodings).flatMap(([suffix, encoding]) => {
    const key = `TimeOtp-Secret${suffix}`;
    const secret = strings.get(key) ?? "";
    return secret === "" ? [] : [{ key, others, parts: { secret, encoding, algorithm, digits, period } }];
  });
}

/** KeePassXC keeps a whole URL or KeeOtp's members in `TOTP Settings` too; a third part of it is a clock's address. */
function trayTotp(strings: ReadonlyMap<string, string>): SeedString[] {
  const [secret, settings] = ["TOTP Seed", "TOTP Settings"].map((name) => strings.get(name)?.trim() ?? "");
  if (secret === undefined || settings === undefined) return [];
  if (/^otpauth:|^key=|&key=/i.test(settings)) return [{ key: "TOTP Settings", others: ["TOTP Seed"], parts: null }];
  if (secret === "") return [];
  if (/^otpauth:|^key=/i.test(secret)) return [{ key: "TOTP Seed", others: ["TOTP Settings"], parts: null }];
  const [period = "", digits = ""] = settings.split(";").map((part) => part.trim());
  const isSteam = digits.toUpperCase() === "S";
  const parts = { secret, encoding: "base32", algorithm: "", digits: isSteam ? "" : digits, period, isSteam } as const;
  return [{ key: "TOTP Seed", others: ["TOTP Settings"], parts }];
}
