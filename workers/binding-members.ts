/** Members of bindings whose credential is computed: checked where a binding is set, in both threads by the same rules. */
import type { Binding, ComputedMembers } from "./protocol.js";

type Rule = { readonly isValid: (value: unknown) => boolean; readonly must: string; readonly isOptional?: true };

const scopeName: Rule = {
  isValid: (value) => typeof value === "string" && /^[0-9a-z][0-9a-z-]{0,63}$/.test(value),
  must: "must be a name such as us-east-1, in lower case",
};

const text = (most: number): Rule => ({
  isValid: (value) => typeof value === "string" && value.length <= most && /^[ -~]+$/.test(value),
  must: `must be a text of at most ${most} printable ASCII characters`,
});

/** DANGER: it becomes a part of a path. */
const id: Rule = {
  isValid: (value) =>
    /^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$/.test(String(value)) && ["string", "number"].includes(typeof value),
  must: "must be an id of letters, digits, dots, dashes and underscores",
};

const httpsUrl: Rule = { isValid: isHttpsUrl, must: "must be an https URL without user and fragment" };

function isHttpsUrl(value: unknown): boolean {
  if (typeof value !== "string" || value.length > 2048 || !/^https:\/\/[!-~]+$/.test(value)) return false;
  const url = URL.canParse(value) ? new URL(value) : null;
  return url !== null && url.username === "" && url.password === "" && !value.includes("#");
}

/** A row for each kind, with a rule for each of its members. */
const kinds: { readonly [K in keyof ComputedMembers]-?: Readonly<Record<string, Rule>> } = {
  githubApp: { appId: id, installation: id, api: { ...httpsUrl, isOptional: true } },
  oauth: { tokenUrl: httpsUrl, clientId: text(256), scope: { ...text(1024), isOptional: true } },
  sigv4: { service: scopeName, region: scopeName },
};

const names = Object.keys(kinds) as readonly (keyof ComputedMembers)[];

/** Picks the members of a computed credential from those of a body, at most one kind; returns text that says what is wrong. */
export function readComputed(members: Readonly<Record<string, unknown>>): ComputedMembers | string {
  const given = names.filter((name) => members[name] !== undefined);
  const [kind] = given;
  if (kind === undefined) return {};
  if (given.length > 1) return `${given.join(" and ")} cannot be used together`;
  const value = members[kind];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return `${kind} must be an object`;
  const found = Object.entries(kinds[kind]).map(([name, rule]) => ({ name, rule, value: Reflect.get(value, name) }));
  const wrong = found.find(({ rule, value: one }) => !(rule.isOptional && one === undefined) && !rule.isValid(one));
  if (wrong !== undefined) return `${kind}.${wrong.name} ${wrong.rule.must}`;
  const read = found.flatMap(({ name, value: one }) => (one === undefined ? [] : [[name, String(one)] as const]));
  return { [kind]: Object.fromEntries(read) } as ComputedMembers;
}

export function isComputed(binding: Binding): boolean {
  return names.some((name) => binding[name] !== undefined);
}

/** Whether the request's body has to be read before its head can be signed. `headers`: names, in lower case. */
export function hashesBody({ sigv4 }: Binding, headers: readonly string[]): boolean {
  if (sigv4 === undefined || sigv4.service === "s3") return false;
  return !headers.some((name) => name.replaceAll("_", "-") === "x-amz-content-sha256");
}

const signatureParameters = /^x-amz-(?:algorithm|credential|date|expires|security-token|signature|signedheaders)$/;

/** Returns the target that is sent: where the head is signed, without the client's own signature. */
export function sentTarget({ sigv4 }: Binding, target: string): string {
  return sigv4 === undefined ? target : withoutQuerySignature(target);
}

/** Returns the target without a signature in its query, as presigned URLs have one. */
export function withoutQuerySignature(target: string): string {
  const start = target.indexOf("?");
  if (start < 0) return target;
  const parameters = target.slice(start + 1).split("&");
  const kept = parameters.filter((parameter) => !signatureParameters.test(parameterName(parameter)));
  if (kept.length === parameters.length) return target;
  return kept.length === 0 ? target.slice(0, start) : `${target.slice(0, start)}?${kept.join("&")}`;
}

function parameterName(parameter: string): string {
  const [name = ""] = parameter.split("=");
  const decoded = name.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decoded.toLowerCase();
}
