/** Rows of transit keys for each API that has them: an operation needs the same scope, and leaves the same record, at both ports. */
import { change, read } from "../audit/record.js";
import type { Endpoint, Handler } from "./endpoint.js";

/** Public parts, and what shows no plaintext: with any scope for transit keys. */
export const anyUse = ["encrypt", "decrypt", "sign"] as const;

type Operation =
  | "createTransitKey"
  | "showTransitKey"
  | "deleteTransitKey"
  | "rotateTransitKey"
  | "configureTransitKey"
  | "exportTransitKey"
  | "encrypt"
  | "decrypt"
  | "rewrap"
  | "sign"
  | "verify"
  | "hmac"
  | "dataKey";

/** @param root the path below which the engine is. */
export function transitRows(
  root: `/v1/${string}`,
  handlers: Readonly<Record<Operation, Handler>>,
): readonly Endpoint<Operation>[] {
  // biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
  return [
    { operation: "createTransitKey", at: `POST ${root}/keys/:name`, scope: "root", guard: "unlocked", audit: change("key-change"), handle: handlers.createTransitKey },
    { operation: "showTransitKey", at: `GET ${root}/keys/:name`, scope: anyUse, guard: "unlocked", audit: null, handle: handlers.showTransitKey },
    { operation: "deleteTransitKey", at: `DELETE ${root}/keys/:name`, scope: "root", guard: "unlocked", audit: change("key-change"), handle: handlers.deleteTransitKey },
    { operation: "rotateTransitKey", at: `POST ${root}/keys/:name/rotate`, scope: "root", guard: "unlocked", audit: change("key-change"), handle: handlers.rotateTransitKey },
    { operation: "configureTransitKey", at: `POST ${root}/keys/:name/config`, scope: "root", guard: "unlocked", audit: change("key-change"), handle: handlers.configureTransitKey },
    { operation: "exportTransitKey", at: `GET ${root}/export/:name`, scope: "root", guard: "unlocked", audit: change("key-export"), handle: handlers.exportTransitKey },
    { operation: "encrypt", at: `POST ${root}/encrypt/:name`, scope: "encrypt", guard: "unlocked", audit: read("encrypt"), handle: handlers.encrypt },
    { operation: "decrypt", at: `POST ${root}/decrypt/:name`, scope: "decrypt", guard: "unlocked", audit: read("decrypt"), handle: handlers.decrypt },
    { operation: "rewrap", at: `POST ${root}/rewrap/:name`, scope: anyUse, guard: "unlocked", audit: read("rewrap"), handle: handlers.rewrap },
    { operation: "sign", at: `POST ${root}/sign/:name`, scope: "sign", guard: "unlocked", audit: read("sign"), handle: handlers.sign },
    { operation: "verify", at: `POST ${root}/verify/:name`, scope: anyUse, guard: "unlocked", audit: read("verify"), handle: handlers.verify },
    { operation: "hmac", at: `POST ${root}/hmac/:name`, scope: "sign", guard: "unlocked", audit: read("hmac"), handle: handlers.hmac },
    { operation: "dataKey", at: `POST ${root}/datakey/:name`, scope: "encrypt", guard: "unlocked", audit: read("datakey"), handle: handlers.dataKey },
  ];
}
