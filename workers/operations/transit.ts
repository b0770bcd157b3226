/** Operations on transit keys: keys that encrypt and sign for clients, and whose private parts stay in this thread. */
import { etagOfCurrent, type SealingKey } from "../crypto/blob.js";
import type { FoundFields, ListElement } from "../json/json-reader.js";
import { concat, concatScratch, fromLatin1, utf8, wipe } from "../memory.js";
import { transitKeyTypes } from "../names.js";
import type {
  Bytes,
  DescribeResult,
  Refusal,
  RequestOf,
  ResultOf,
  SealResult,
  TransitUse,
  VaultForm,
} from "../protocol.js";
import { badRequest, damagedKey, lockedMeanwhile, noTransitKey, sameTransitKey } from "../refusals.js";
import { toBase64 } from "../transit/base64.js";
import { Fields, Invalid, parseBody } from "../transit/body.js";
import {
  type KeyInfo,
  mostKeyVersions,
  newKeyId,
  type OpenedKey,
  openKey,
  openKeyInfo,
  openKeyInfos,
  sealKey,
} from "../transit/key-format.js";
import { encryptionRules, isAsymmetric, isRsa, type KeyType, keyTypes, symmetricPart } from "../transit/key-types.js";
import { oneTimeCode as computeCode } from "../transit/one-time-code.js";
import {
  importPrivatePart,
  makePrivatePart,
  makeRsaPrivatePart,
  parsePrivatePart,
  privateKeyDer,
  publicText,
} from "../transit/private-keys.js";
import { ResponseWriter } from "../transit/response-writer.js";
import { DamagedKey, UsableKey } from "../transit/usable-key.js";
import { countsMessages, encryptionVersion, messagesTaken, randomResponse, uses } from "../transit/uses.js";
import {
  batchStatus,
  checkBesideBatch,
  exported,
  parseVaultBody,
  shownVaultKey,
  type TransitOperation,
  vaultFields,
  vaultHash,
  vaultRandom,
  versionNamed,
  writeReference,
} from "../transit/vault-form.js";
import type { Context } from "./context.js";
import { openSecret, written } from "./entry.js";
import { bytesOfValue } from "./value.js";

/** A wanted key or version. `hasMaterial`: the client supplies the key material. */
type Wish = { readonly type: KeyType; readonly exportable: boolean; readonly hasMaterial: boolean };

export async function createTransitKey(
  context: Context,
  { name, exists, body, now, form }: RequestOf<"createTransitKey">,
): Promise<ResultOf<"createTransitKey">> {
  const wish = withValid(context, () => parseWish(parseFields(context, body, form, "createTransitKey")), form);
  if ("ok" in wish) return wish;
  if (exists) return sameTransitKey(name);
  const createdAt = new Date(now).toISOString();
  return withNewPart(context, wish, body, (key, part) => {
    const { type, exportable } = wish;
    const settings = {
      id: newKeyId(),
      type,
      exportable,
      deletionAllowed: false,
      minDecryptionVersion: 1,
      versions: [],
    };
    return sealed(key, name, withVersion({ info: settings, privateParts: [] }, part, createdAt), form);
  });
}

export async function changeTransitKey(
  context: Context,
  request: RequestOf<"changeTransitKey">,
): Promise<ResultOf<"changeTransitKey">> {
  const { change, name, blob, body, now, form } = request;
  if (change === "config") return configure(context, request);
  const createdAt = new Date(now).toISOString();
  const wish = withValid(
    context,
    (key) => {
      const info = openKeyInfo(key, name, blob);
      if (info === null) return damagedKey(name);
      if (info.versions.length === mostKeyVersions) throw new Invalid(`a key has at most ${mostKeyVersions} versions`);
      const hasMaterial = parseFields(context, body, form, "rotateTransitKey").has("key");
      return { type: info.type, exportable: info.exportable, hasMaterial };
    },
    form,
  );
  if ("ok" in wish) return wish;
  return withNewPart(context, wish, body, (key, part) => {
    const opened = openKey(key, name, blob);
    return opened === null ? damagedKey(name) : sealed(key, name, withVersion(opened, part, createdAt), form);
  });
}

export function showTransitKey(
  { keyring }: Context,
  { name, blob, form }: RequestOf<"showTransitKey">,
): ResultOf<"showTransitKey"> {
  return keyring.withKey((key) => {
    const info = openKeyInfo(key, name, blob);
    return info === null ? damagedKey(name) : { ok: true, response: utf8(JSON.stringify(shownKey(name, info, form))) };
  });
}

/** The one way out for a private part, which the key itself must have allowed when it was made. */
export function exportTransitKey(
  context: Context,
  { name, blob, form }: RequestOf<"exportTransitKey">,
): ResultOf<"exportTransitKey"> {
  return withValid(context, (key) => {
    const opened = openKey(key, name, blob);
    if (opened === null) return damagedKey(name);
    if (form !== undefined) return { ok: true, response: exported(form, opened) };
    const { info, privateParts } = opened;
    if (!info.exportable) throw new Invalid(`the key ${name} was not made exportable: its private part stays here`);
    const head = `{"name":${JSON.stringify(name)},"type":"${info.type}","keys":{`;
    const keys = privateParts.flatMap((part, i) => [
      `${i === 0 ? "" : ","}"${i + 1}":"`,
      toBase64(symmetricPart(info.type, part) ?? privateKeyDer(info.type, part)),
      '"',
    ]);
    return { ok: true, response: concat([head, ...keys, "}}"]) };
  });
}

export function checkTransitDeletion(
  context: Context,
  { name, blob, form }: RequestOf<"checkTransitDeletion">,
): ResultOf<"checkTransitDeletion"> {
  return withValid(
    context,
    (key) => {
      const info = openKeyInfo(key, name, blob);
      if (info === null) return damagedKey(name);
      if (info.deletionAllowed) return { ok: true };
      throw new Invalid(
        `the key ${name} must not be deleted, since what it encrypted is lost then: set deletionAllowed first`,
        `error deleting policy ${form?.name}: deletion is not allowed for this key`,
      );
    },
    form,
  );
}

export function listTransitKeys(
  { keyring }: Context,
  { names, heads }: RequestOf<"listTransitKeys">,
): ResultOf<"listTransitKeys"> {
  return keyring.withKey((key) => {
    const blobs = names.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
    const infos = openKeyInfos(key, blobs);
    const entries = infos.flatMap((info, i) => {
      if (info === null) return [];
      return [JSON.stringify({ name: names[i], type: info.type, latestVersion: info.versions.length })];
    });
    return {
      ok: true,
      response: utf8(entries.join(",")),
      damaged: names.filter((_, i) => infos[i] === null),
    } satisfies DescribeResult;
  });
}

export async function useTransitKey(
  context: Context,
  request: RequestOf<"useTransitKey">,
): Promise<ResultOf<"useTransitKey">> {
  const begun = withValid(context, (key) => begin(context, key, request), request.form);
  if ("ok" in begun) return begun;
  const out = writerFor(request);
  let isWhole = false;
  try {
    const result = await runBatch(context, request, begun, out);
    isWhole = result.ok;
    return result;
  } finally {
    if (!isWhole) out.wipe();
  }
}

async function runBatch(
  context: Context,
  request: RequestOf<"useTransitKey">,
  begun: Begun,
  out: ResponseWriter,
): Promise<ResultOf<"useTransitKey">> {
  const { form, use } = request;
  const { inputs, info } = begun;
  const tried = use === "unwrap" ? info.versions.length - info.minDecryptionVersion + 1 : 1;
  const slice = Math.ceil(keyTypes[info.type].inputsAtOnce / tried);
  let failed = 0;
  out.text(form === undefined ? '{"results":[' : '{"batch_results":[');
  for (let at = 0; at < inputs.length; at += slice) {
    await context.transit.sliceTurn();
    const found = withValid(context, (key) => runInputs(context, key, request, begun, at, slice, out));
    if (typeof found === "object") return found;
    failed += found;
  }
  out.text("]}");
  if (form === undefined) return { ok: true, response: out.written() };
  return { ok: true, response: out.written(), status: batchStatus(begun.body, use, failed, inputs.length) };
}

/** Reserves messages of these versions, in a blob that is not stored yet. */
export function reserveMessages(
  context: Context,
  { name, blob, versions }: RequestOf<"reserveMessages">,
): ResultOf<"reserveMessages"> {
  return withValid(context, (key) => {
    const opened = openKey(key, name, blob);
    if (opened === null) return damagedKey(name);
    const { info } = opened;
    const blocks = new Map(versions.map((version) => [version, context.transit.messages.block(info, version)]));
    for (const [version, count] of blocks) {
      if (count > 0) continue;
      throw new Invalid(`version ${version} of the key ${name} has encrypted 2^32 messages, its limit: rotate the key`);
    }
    const counted = info.versions.map((one, i) => {
      const count = blocks.get(i + 1);
      return count === undefined ? one : { ...one, messages: (one.messages ?? 0) + count };
    });
    const reserved = sealKey(key, name, { ...opened, info: { ...info, versions: counted } });
    const etag = etagOfCurrent(reserved);
    for (const [version, count] of blocks) context.transit.messages.reserve(info, version, etag, count);
    return { ok: true, blob: reserved };
  });
}

export function randomBytes(context: Context, { body, form }: RequestOf<"randomBytes">): ResultOf<"randomBytes"> {
  return withValid(context, () => {
    const fields = parseFields(context, body, form, "random");
    return { ok: true, response: form === undefined ? randomResponse(fields) : vaultRandom(fields) };
  });
}

export function hashBytes(context: Context, { body, form }: RequestOf<"hashBytes">): ResultOf<"hashBytes"> {
  return withValid(context, () => ({ ok: true, response: vaultHash(parseFields(context, body, form, "hash")) }), form);
}

export function oneTimeCode(
  { keyring }: Context,
  { path, blob, now }: RequestOf<"oneTimeCode">,
): ResultOf<"oneTimeCode"> {
  return keyring.withKey((key) => {
    const opened = openSecret(key, path, blob, now);
    if ("ok" in opened) return opened;
    const code = computeCode(bytesOfValue(opened.value), now);
    if (code === null)
      return badRequest(`the secret at ${path} is neither an otpauth://totp/ URL nor another seed of one-time codes`);
    if ("problem" in code) return badRequest(`the seed at ${path} cannot be used: ${code.problem}`);
    return { ok: true, response: utf8(JSON.stringify({ path, ...code })) };
  });
}

type Begun = {
  readonly body: FoundFields;
  readonly inputs: readonly ListElement[];
  readonly info: KeyInfo;
  readonly blob: Bytes;
};

/** A response that is longer than its request by less than this fits without a second allocation. */
const longerResponse = 256;

function writerFor({ body }: RequestOf<"useTransitKey">): ResponseWriter {
  return new ResponseWriter(body.length + longerResponse);
}

/** Does the whole work for a single input. */
function begin(
  context: Context,
  key: SealingKey,
  request: RequestOf<"useTransitKey">,
): Begun | ResultOf<"useTransitKey"> {
  const { use, name, blob, form } = request;
  const parsed = form === undefined ? parseBody(request.body) : parseVaultBody(request.body);
  const inputs = parsed.inputs();
  const body = parsed.fields;
  if (form !== undefined && inputs?.length === 0) throw new Invalid("missing batch input to process");
  if (form !== undefined && inputs !== null) checkBesideBatch(body, use);
  const fields = inputs === null ? inputFields(context, body, form, use) : null;
  if (blob === null) return noTransitKey(name);
  const usable = new UsableKey(key, name, blob, context.transit);
  const { info } = usable;
  const named = inputs?.map((input) => (form === undefined ? null : versionNamed(input)));
  const lacking = takeMessages(context, use, usable, named ?? [fields]);
  if (lacking.length > 0) return { ok: true, response: null, lacking };
  if (fields === null) return { body, inputs: inputs ?? [], info, blob };
  const out = writerFor(request);
  out.text("{");
  uses[use](usable, fields, out);
  out.text("}");
  return { ok: true, response: out.written() };
}

/** Takes a message for each input, given by its fields or by the version that it names; returns versions that have too few. */
function takeMessages(
  { transit }: Context,
  use: TransitUse,
  usable: UsableKey,
  inputs: readonly (Fields | number | null)[],
): readonly number[] {
  if (!countsMessages(use, usable)) return [];
  const named = inputs.map((input) => (input instanceof Fields ? encryptionVersion(usable, input) : input));
  return transit.messages.take(usable.info, usable.etag, messagesTaken(usable, named));
}

/** Writes the JSON of the results of a slice of the inputs, or of their errors; returns how many failed. */
function runInputs(
  context: Context,
  key: SealingKey,
  { use, name, form }: RequestOf<"useTransitKey">,
  { blob, body, inputs }: Begun,
  from: number,
  most: number,
  out: ResponseWriter,
): number {
  const usable = new UsableKey(key, name, blob, context.transit);
  let failed = 0;
  for (const [i, input] of inputs.slice(from, from + most).entries()) {
    out.text(from + i === 0 ? "{" : ",{");
    try {
      uses[use](usable, inputFields(context, input, form, use, body), out);
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      failed++;
      out.text(errorMembers(error, form));
    }
    if (form !== undefined) writeReference(out, input);
    out.text("}");
  }
  return failed;
}

function errorMembers(error: Invalid, form?: VaultForm): string {
  if (form !== undefined) return `"error":${JSON.stringify(error.forVault)}`;
  return `"error":${JSON.stringify(error.message)},"code":"BAD_REQUEST"`;
}

/** Runs an operation of an unlocked vault; what it finds invalid becomes a refusal. */
function withValid<T>(context: Context, operation: (key: SealingKey) => T, form?: VaultForm): T | Refusal {
  return context.keyring.withKey((key) => {
    try {
      return operation(key);
    } catch (error) {
      if (error instanceof Invalid) return error.refusal(form !== undefined);
      if (error instanceof DamagedKey) return damagedKey(error.keyName);
      throw error;
    }
  });
}

/** @throws Invalid */
function parseFields(
  context: Context,
  body: Uint8Array,
  form: VaultForm | undefined,
  operation: TransitOperation,
): Fields {
  const { fields } = form === undefined ? parseBody(body) : parseVaultBody(body);
  return inputFields(context, fields, form, operation);
}

/** @throws Invalid */
function inputFields(
  { settings }: Context,
  input: ListElement,
  form: VaultForm | undefined,
  operation: TransitOperation,
  batch?: FoundFields,
): Fields {
  if (form === undefined) return Fields.of(input, settings.maxValueBytes);
  return vaultFields(input, settings.maxValueBytes, form, operation, batch);
}

function parseWish(fields: Fields): Wish {
  const type = fields.choice("type", transitKeyTypes, "aes256-gcm96");
  return { type, exportable: fields.flag("exportable", false), hasMaterial: fields.has("key") };
}

/** Calls `seal` with a new private part, which is wiped then. */
async function withNewPart(
  context: Context,
  { type, hasMaterial }: Wish,
  body: Uint8Array,
  seal: (key: SealingKey, part: NewPart) => SealResult | Refusal,
): Promise<SealResult | Refusal> {
  if (!hasMaterial && isRsa(type)) return withNewRsaPart(context, type, seal);
  return withValid(context, (key) => {
    const part = hasMaterial ? importedPart(context, type, body) : makePrivatePart(type);
    return seal(key, { part, ...publicPart(type, part) });
  });
}

/** `publicKey`: of asymmetric keys. */
type NewPart = { readonly part: Uint8Array; readonly publicKey?: string };

function importedPart(context: Context, type: KeyType, body: Uint8Array): Uint8Array {
  const part = importPrivatePart(type, parseFields(context, body, undefined, "createTransitKey").bytes("key"));
  if (part === "damaged") {
    throw new Invalid("the private key is damaged: its parts do not belong together; use an intact copy");
  }
  if (part !== "foreign") return part;
  const form = isAsymmetric(type) ? "its PKCS #8 in DER, without a passphrase" : "its bytes";
  throw new Invalid(`key is not a key of type ${type}: send ${form}, in base64`);
}

function publicPart(type: KeyType, part: Uint8Array): { readonly publicKey?: string } {
  return isAsymmetric(type) ? { publicKey: publicText(type, parsePrivatePart(type, part)) } : {};
}

/** Generates keys one at a time, in libuv's pool; a lock cancels those waiting and drops the running one's result. */
function withNewRsaPart(
  context: Context,
  type: KeyType,
  seal: (key: SealingKey, part: NewPart) => SealResult | Refusal,
): Promise<SealResult | Refusal> {
  const { keyring, transit } = context;
  return transit.generations.take(null, async () => {
    const { lockings } = keyring;
    const made = await makeRsaPrivatePart(type);
    try {
      if (lockings !== keyring.lockings) return { response: lockedMeanwhile };
      return {
        response: withValid(context, (key) => {
          const part = concatScratch(made);
          return seal(key, { part, ...publicPart(type, part) });
        }),
      };
    } finally {
      wipe(made);
    }
  });
}

function withVersion({ info, privateParts }: OpenedKey, { part, publicKey }: NewPart, createdAt: string): OpenedKey {
  const version = {
    createdAt,
    ...(publicKey !== undefined && { publicKey }),
    ...(encryptionRules(keyTypes[info.type])?.countsMessages && { messages: 0 }),
  };
  return { info: { ...info, versions: [...info.versions, version] }, privateParts: [...privateParts, part] };
}

function configure(context: Context, { name, blob, body, form }: RequestOf<"changeTransitKey">): SealResult | Refusal {
  return withValid(
    context,
    (key) => {
      const opened = openKey(key, name, blob);
      if (opened === null) return damagedKey(name);
      const { info } = opened;
      const fields = parseFields(context, body, form, "configureTransitKey");
      if (form !== undefined && fields.flag("exportable", info.exportable) !== info.exportable)
        throw new Invalid("exportable is said when a key is made, and never changes: make a new key");
      // Vault's clients may send 0 for 1.
      const least = form === undefined ? 1 : 0;
      const first = fields.whole("minDecryptionVersion", least, info.versions.length, info.minDecryptionVersion);
      const changed = {
        ...info,
        minDecryptionVersion: Math.max(1, first),
        deletionAllowed: fields.flag("deletionAllowed", info.deletionAllowed),
      };
      return sealed(key, name, { ...opened, info: changed }, form);
    },
    form,
  );
}

function sealed(key: SealingKey, name: string, opened: OpenedKey, form?: VaultForm): SealResult {
  const blob = sealKey(key, name, opened);
  return written(blob, utf8(JSON.stringify(shownKey(name, opened.info, form))));
}

function shownKey(name: string, info: KeyInfo, form?: VaultForm): object {
  if (form !== undefined) return shownVaultKey(form.name, info);
  const { type, exportable, deletionAllowed, minDecryptionVersion, versions } = info;
  const shown = versions.map(({ createdAt, publicKey }, i) => [i + 1, { createdAt, publicKey }]);
  const latestVersion = versions.length;
  return {
    ...{ name, type, latestVersion, minDecryptionVersion, exportable, deletionAllowed },
    versions: Object.fromEntries(shown),
  };
}
