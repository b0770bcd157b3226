/** Scopes and audit records of transit keys, the same at each port that has them. */
import { change, read } from "../audit/record.js";
import type { Endpoint } from "./endpoint.js";

/** Public parts, and what shows no plaintext: with any scope for transit keys. */
export const anyUse = ["encrypt", "decrypt", "sign"] as const;

export const transitFacts = {
  createTransitKey: { scope: "root", guard: "unlocked", audit: change("key-change") },
  showTransitKey: { scope: anyUse, guard: "unlocked", audit: null },
  deleteTransitKey: { scope: "root", guard: "unlocked", audit: change("key-change") },
  rotateTransitKey: { scope: "root", guard: "unlocked", audit: change("key-change") },
  configureTransitKey: { scope: "root", guard: "unlocked", audit: change("key-change") },
  exportTransitKey: { scope: "root", guard: "unlocked", audit: change("key-export") },
  encrypt: { scope: "encrypt", guard: "unlocked", audit: read("encrypt") },
  decrypt: { scope: "decrypt", guard: "unlocked", audit: read("decrypt") },
  unwrap: { scope: "decrypt", guard: "unlocked", audit: read("decrypt") },
  rewrap: { scope: anyUse, guard: "unlocked", audit: read("rewrap") },
  sign: { scope: "sign", guard: "unlocked", audit: read("sign") },
  verify: { scope: anyUse, guard: "unlocked", audit: read("verify") },
  hmac: { scope: "sign", guard: "unlocked", audit: read("hmac") },
  dataKey: { scope: "encrypt", guard: "unlocked", audit: read("datakey") },
} as const satisfies Readonly<Record<string, Pick<Endpoint, "scope" | "guard" | "audit">>>;
