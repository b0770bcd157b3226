/** What transit keys need at each port that has them: the same scope, and the same record. */
import { change, read } from "../audit/record.js";
import type { Endpoint, Handler, HandRow } from "./endpoint.js";

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
  rewrap: { scope: anyUse, guard: "unlocked", audit: read("rewrap") },
  sign: { scope: "sign", guard: "unlocked", audit: read("sign") },
  verify: { scope: anyUse, guard: "unlocked", audit: read("verify") },
  hmac: { scope: "sign", guard: "unlocked", audit: read("hmac") },
  dataKey: { scope: "encrypt", guard: "unlocked", audit: read("datakey") },
} as const satisfies Readonly<Record<string, Pick<Endpoint, "scope" | "guard" | "audit">>>;

type Operation = keyof typeof transitFacts;

const places: Readonly<Record<Operation, readonly [method: "GET" | "POST" | "DELETE", path: string]>> = {
  createTransitKey: ["POST", "keys/:name"],
  showTransitKey: ["GET", "keys/:name"],
  deleteTransitKey: ["DELETE", "keys/:name"],
  rotateTransitKey: ["POST", "keys/:name/rotate"],
  configureTransitKey: ["POST", "keys/:name/config"],
  exportTransitKey: ["GET", "export/:name"],
  encrypt: ["POST", "encrypt/:name"],
  decrypt: ["POST", "decrypt/:name"],
  rewrap: ["POST", "rewrap/:name"],
  sign: ["POST", "sign/:name"],
  verify: ["POST", "verify/:name"],
  hmac: ["POST", "hmac/:name"],
  dataKey: ["POST", "datakey/:name"],
};

/** @param root the path below which the engine is. */
export function transitRows(
  root: `/v1/${string}`,
  handlers: Readonly<Record<Operation, Handler>>,
): readonly HandRow<Operation>[] {
  return (Object.keys(transitFacts) as Operation[]).map((operation) => {
    const [method, path] = places[operation];
    return { operation, at: `${method} ${root}/${path}`, ...transitFacts[operation], handle: handlers[operation] };
  });
}
