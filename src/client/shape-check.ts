/**
 * Check of decoded JSON against the shapes of the API: what a foreign or broken server sends becomes an error here, not
 * somewhere inside. Members and values that a later server adds pass.
 *
 *   string  boolean  integer (none of the API is negative)  number  time  object  null
 *   Name    an object of this shape      []X  a list of X      {}X  an object whose members are X      X|Y  either
 */
import { type Responses, shapes as responses } from "./shapes.js";

/** Returns the fault, to follow the name of the value, or null. Never a part of the value, which may be secret. */
type Check = (value: unknown) => string | null;

/** Figures of one second; null where nothing happened. */
export type VitalSigns = {
  readonly time: string;
  readonly requests: number;
  readonly getP50: number | null;
  readonly getP99: number | null;
  readonly eventLoopP99: number;
  readonly derivationsRunning: number;
  readonly derivationsWaiting: number;
  readonly keyWorkerP99: number | null;
  readonly connections: number;
  readonly rss: number;
};

/** A document of which the client knows only that it is one. */
type OpenApi = { readonly [name: string]: unknown };

/** All that the server sends, by the names of the shapes. */
export type Shaped = Responses & { readonly VitalSigns: VitalSigns; readonly OpenApi: OpenApi };

const shapes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ...responses,
  ErrorContent: {
    error: "string",
    code: "string",
    "credential?": "string",
    "reason?": "string",
    "index?": "integer",
    "requestId?": "string",
  },
  OpenApi: { openapi: "string", info: "object", paths: "object" },
  VitalSigns: {
    time: "time",
    requests: "number",
    getP50: "number|null",
    getP99: "number|null",
    eventLoopP99: "number",
    derivationsRunning: "number",
    derivationsWaiting: "number",
    keyWorkerP99: "number|null",
    connections: "number",
    rss: "number",
  },
};

/** Returns what is wrong with a value that must have this shape, such as ".entries[3].etag is missing"; null for nothing. */
export function shapeProblem(shape: string, value: unknown): string | null {
  return cachedCheck(shape)(value);
}

/** RFC 3339, of which `Date` understands all. */
const timePattern =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Made when they are needed: a command needs one or two. */
const checks = new Map<string, Check>([
  ["string", (value) => (typeof value === "string" ? null : " is not a string")],
  ["boolean", (value) => (typeof value === "boolean" ? null : " is not true or false")],
  ["integer", (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? null : " is not a whole number")],
  ["number", (value) => (Number.isFinite(value) ? null : " is not a number")],
  ["time", (value) => (typeof value === "string" && timePattern.test(value) ? null : " is not a time")],
  ["null", (value) => (value === null ? null : " is not null")],
  ["object", (value) => (isObject(value) ? null : " is not an object")],
]);

function cachedCheck(shape: string): Check {
  const known = checks.get(shape);
  if (known !== undefined) return known;
  const check = makeCheck(shape);
  checks.set(shape, check);
  return check;
}

function makeCheck(shape: string): Check {
  if (shape.startsWith("[]")) return checkOfList(cachedCheck(shape.slice(2)));
  if (shape.startsWith("{}")) return checkOfMembers(cachedCheck(shape.slice(2)));
  if (shape.includes("|")) return checkOfEither(shape.split("|").map(cachedCheck));
  return checkOfShape(Object.entries(shapes[shape] ?? {}));
}

function checkOfShape(entries: readonly (readonly [member: string, shape: string])[]): Check {
  const members = entries.map(([member, shape]): readonly [name: string, check: Check] => {
    const check = cachedCheck(shape);
    if (!member.endsWith("?")) return [member, (value) => (value === undefined ? " is missing" : check(value))];
    return [member.slice(0, -1), (value) => (value === undefined ? null : check(value))];
  });
  return (value) => {
    if (!isObject(value)) return " is not an object";
    for (const [name, check] of members) {
      const problem = check(value[name]);
      if (problem !== null) return `.${name}${problem}`;
    }
    return null;
  };
}

function checkOfList(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return " is not a list";
    for (let i = 0; i < value.length; i++) {
      const problem = check(value[i]);
      if (problem !== null) return `[${i}]${problem}`;
    }
    return null;
  };
}

/** The names come from the server, and stay out of the message. */
function checkOfMembers(check: Check): Check {
  return (value) => {
    if (!isObject(value)) return " is not an object";
    for (const member of Object.values(value)) {
      const problem = check(member);
      if (problem !== null) return `: a member${problem}`;
    }
    return null;
  };
}

/** The first of several is the usual one. */
function checkOfEither(either: readonly Check[]): Check {
  return (value) => {
    const [usual = null, ...others] = either.map((check) => check(value));
    return others.includes(null) ? null : usual;
  };
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
