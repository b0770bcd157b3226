/** Endpoints of transit keys and one-time codes. */
import { visibleRanges } from "../access/rights.js";
import { read } from "../audit/record.js";
import { input, sharedValue } from "./body.js";
import { bytes, endpoint, json, key, none, secret } from "./endpoint.js";
import { anyUse, transitFacts } from "./transit-facts.js";

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
  endpoint({
    operation: "encrypt", at: "POST /v1/transit/encrypt/:name", ...transitFacts.encrypt,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("encrypt", name, body)),
  }),
  endpoint({
    operation: "decrypt", at: "POST /v1/transit/decrypt/:name", ...transitFacts.decrypt,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("decrypt", name, body)),
  }),
  endpoint({
    operation: "unwrap", at: "POST /v1/transit/unwrap/:name", ...transitFacts.unwrap,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("unwrap", name, body)),
  }),
  endpoint({
    operation: "rewrap", at: "POST /v1/transit/rewrap/:name", ...transitFacts.rewrap,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("rewrap", name, body)),
  }),
  endpoint({
    operation: "sign", at: "POST /v1/transit/sign/:name", ...transitFacts.sign,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("sign", name, body)),
  }),
  endpoint({
    operation: "verify", at: "POST /v1/transit/verify/:name", ...transitFacts.verify,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("verify", name, body)),
  }),
  endpoint({
    operation: "hmac", at: "POST /v1/transit/hmac/:name", ...transitFacts.hmac,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("hmac", name, body)),
  }),
  endpoint({
    operation: "dataKey", at: "POST /v1/transit/datakey/:name", ...transitFacts.dataKey,
    subject: key, body: input, conditional: false, reads: true,
    handle: async ({ vault, key: name, body }) => bytes(await vault.transit.use("datakey", name, body)),
  }),
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
