/** Operations on uses: the hosts a secret is bound to, and heads of requests to them, the only place that its value goes. */
import { isComputed, readComputed } from "../binding-members.js";
import {
  earlierIn,
  etagOfCurrent,
  type OpenedVersion,
  openMetadata,
  type SealingKey,
  sealBlob,
} from "../crypto/blob.js";
import { type JsonValue, readObject } from "../json/json-reader.js";
import { JsonText } from "../json/json-string.js";
import { fromLatin1, withScratch } from "../memory.js";
import type { Binding, Refusal, RequestOf, ResultOf, WriteOf, WriteResult } from "../protocol.js";
import { badRequest, forbidden } from "../refusals.js";
import { JudgedRequest } from "../use-rules.js";
import { readHeaderLines } from "../uses/head.js";
import { bindingKind } from "../uses/kinds.js";
import type { Context, Writing } from "./context.js";
import { type Attributes, openSecret, readMetadata, sealResult, versionContent, withAttributes } from "./entry.js";
import { bytesOfValue } from "./value.js";

/** Limit of uses per secret. */
const mostUses = 64;

/** Seals the current version again, with the same value, number and times, but another etag. */
export function setUses(
  { key, path, previous, now }: Writing,
  { add, removeHost }: WriteOf<"setUses">,
): WriteResult | Refusal {
  const computed = readComputed(add ?? {});
  if (typeof computed === "string") return badRequest(computed);
  const current = openSecret(key, path, previous, now);
  if ("ok" in current) return current;
  const { version, attributes } = readMetadata(current.metadata);
  const { uses: _, computed: __, ...rest } = attributes.secret ?? {};
  const all = changed(usesIn(attributes), add, removeHost);
  if (all === null) return notBound(path);
  if (all.length > mostUses) return badRequest(`a secret can be bound to at most ${mostUses} hosts`);
  const [uses, computedUses] = [all.filter((use) => !isComputed(use)), all.filter(isComputed)];
  const lists = { ...(uses.length > 0 && { uses }), ...(computedUses.length > 0 && { computed: computedUses }) };
  const secret = { ...rest, ...lists };
  const content = versionContent(current);
  const metadata = withAttributes(current.metadata, { ...attributes, secret });
  const sealed = sealBlob(key, path, metadata, content.value, earlierIn(previous));
  return sealResult(path, sealed, { ...content, version });
}

/** Bindings whose credential is computed come last. */
function usesIn({ secret: { uses = [], computed = [] } = {} }: Attributes): readonly Binding[] {
  return [...uses, ...computed];
}

/** A binding replaces the one to the same host; null when there is none to remove. */
function changed(uses: readonly Binding[], add: Binding | null, removeHost: string | null): readonly Binding[] | null {
  if (add !== null) return [...uses.filter(({ host }) => host !== add.host), add];
  const others = uses.filter(({ host }) => host !== removeHost);
  return others.length === uses.length ? null : others;
}

function notBound(path: string): Refusal {
  const detail = `${path} is not bound to this host: GET /v1/uses/${path} lists its hosts`;
  return { ok: false, code: "NOT_FOUND", detail };
}

/** A secret whose metadata does not open has none. */
export function describeUses(
  { keyring }: Context,
  { paths, heads }: RequestOf<"describeUses">,
): ResultOf<"describeUses"> {
  return keyring.withKey((key) => {
    const blobs = paths.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
    const opened = openMetadata(key, blobs);
    return {
      ok: true,
      uses: opened.map((metadata) => (metadata === null ? [] : usesIn(readMetadata(metadata).attributes))),
    };
  });
}

/** The front end must not read the body: it may hold a passphrase. */
export function readDecision(_: Context, { body }: RequestOf<"readDecision">): ResultOf<"readDecision"> {
  return withScratch(() => {
    const found = readObject(body, ["approve", "for", "passphrase"]);
    if (found === null) return badRequest("the body must be one JSON object in UTF-8");
    const approve = found.get("approve");
    if (typeof approve !== "boolean") return badRequest("approve must be true or false");
    const duration = approvalDuration(found.get("for"));
    if (duration !== null) return { ok: true, approve, duration, hasPassphrase: found.has("passphrase") };
    return badRequest("for must be request, session, or a whole number of seconds up to 31536000");
  });
}

function approvalDuration(value: JsonValue | undefined): number | "request" | "session" | null {
  if (value === undefined) return "request";
  const text = value instanceof JsonText ? value.toString() : value;
  if (text === "request" || text === "session") return text;
  return typeof text === "number" && Number.isInteger(text) && text > 0 && text <= 31_536_000 ? text : null;
}

export function render(
  { keyring, computed, now }: Context,
  { path, blob, ...request }: RequestOf<"render">,
): ResultOf<"render"> {
  return keyring.withKey((key) => {
    const use = openUse(key, path, blob, request, now);
    if ("ok" in use) return use;
    const { binding, value } = use;
    const reason = new JudgedRequest(request).whyNot(binding);
    if (reason !== null) return forbidden(reason);
    const lines = readHeaderLines(binding, request.fields);
    if ("ok" in lines) return lines;
    const etag = etagOfCurrent(blob);
    return bindingKind(binding).makeHead({ path, binding, request, lines, value, now, etag, tokens: computed });
  });
}

/** A secret and its binding to one host. `value`: in scratch memory. */
export type OpenedUse = { readonly current: OpenedVersion; readonly binding: Binding; readonly value: Uint8Array };

/** Opens a secret for requests to a host. */
export function openUse(
  key: SealingKey,
  path: string,
  blob: Uint8Array | null,
  { host, port }: Pick<Binding, "host" | "port">,
  now: number,
): OpenedUse | Refusal {
  const current = openSecret(key, path, blob, now);
  if ("ok" in current) return current;
  const uses = usesIn(readMetadata(current.metadata).attributes);
  const binding = uses.find((use) => use.host === host && use.port === port);
  if (binding === undefined) return forbidden(`${path} is not bound to ${host}, port ${port}`);
  return { current, binding, value: bytesOfValue(current.value) };
}
