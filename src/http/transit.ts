/** Endpoints of transit keys and one-time codes. */
import type { TransitUse } from "../../workers/protocol.js";
import { visibleRanges } from "../access/rights.js";
import { read } from "../audit/record.js";
import { input, sharedValue } from "./body.js";
import { bytes, endpoint, json, key, none, secret } from "./endpoint.js";
import { anyUse, transitFacts } from "./transit-facts.js";

/** Returns the row of a use of a key. */
function use(path: TransitUse) {
  const operation = path === "datakey" ? "dataKey" : path;
  const { scope, guard, audit } = transitFacts[operation];
  // biome-ignore format: what is decided for an endpoint stands in lines that can be compared
  return endpoint({
    operation, at: `POST /v1/transit/${path}/:name`, scope, guard, audit,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use(path, name, body)),
  });
}

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const transitRows = [
  endpoint({
    operation: "listTransitKeys", at: "GET /v1/transit/keys", scope: anyUse, guard: "unlocked", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async ({ vault, caller }) => bytes(...(await vault.transit.list(visibleRanges(caller).within))),
  }),
  endpoint({
    operation: "createTransitKey", at: "POST /v1/transit/keys/:name", ...transitFacts.createTransitKey,
    subject: key, body: sharedValue, conditional: false, reads: false,
    handle: async ({ vault, key: name, body, permit }) => bytes(await vault.transit.create(name, body, permit)),
  }),
  endpoint({
    operation: "showTransitKey", at: "GET /v1/transit/keys/:name", ...transitFacts.showTransitKey,
    subject: key, body: null, conditional: false, reads: true,
    handle: async ({ vault, key: name }) => bytes(await vault.transit.show(name)),
  }),
  endpoint({
    operation: "deleteTransitKey", at: "DELETE /v1/transit/keys/:name", ...transitFacts.deleteTransitKey,
    subject: key, body: null, conditional: false, reads: false,
    async handle({ vault, key: name, permit }) {
      await vault.transit.remove(name, permit);
      return json({ ok: true, name, message: "the transit key is deleted" });
    },
  }),
  endpoint({
    operation: "rotateTransitKey", at: "POST /v1/transit/keys/:name/rotate", ...transitFacts.rotateTransitKey,
    subject: key, body: sharedValue, conditional: false, reads: false,
    handle: async ({ vault, key: name, body, permit }) => bytes(await vault.transit.change("rotate", name, body, permit)),
  }),
  endpoint({
    operation: "configureTransitKey", at: "POST /v1/transit/keys/:name/config", ...transitFacts.configureTransitKey,
    subject: key, body: sharedValue, conditional: false, reads: false,
    handle: async ({ vault, key: name, body, permit }) => bytes(await vault.transit.change("config", name, body, permit)),
  }),
  endpoint({
    operation: "exportTransitKey", at: "GET /v1/transit/export/:name", ...transitFacts.exportTransitKey,
    subject: key, body: null, conditional: false, reads: true,
    handle: async ({ vault, key: name }) => bytes(await vault.transit.export(name)),
  }),
  use("encrypt"),
  use("decrypt"),
  use("unwrap"),
  use("rewrap"),
  use("sign"),
  use("verify"),
  use("hmac"),
  use("datakey"),
  endpoint({
    operation: "randomBytes", at: "POST /v1/transit/random", scope: anyUse, guard: "unlocked", audit: null,
    subject: none, body: sharedValue, conditional: false, reads: true,
    handle: async ({ vault, body }) => bytes(await vault.transit.random(body)),
  }),
  endpoint({
    operation: "oneTimeCode", at: "POST /v1/otp/:path", scope: "use", guard: "unlocked", audit: read("otp"),
    subject: secret, body: null, conditional: false, reads: true,
    handle: async ({ vault, path }) => bytes(await vault.secrets.oneTimeCode(path)),
  }),
];
