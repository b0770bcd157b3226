/**
 * Judge of every response that a test receives: a status, code, header or field that the OpenAPI document does not have is
 * a violation and fails the test file. Also records which documented responses were seen.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { errorStatuses } from "../../src/errors.js";
import { readPackageFile } from "../../src/manifest.js";

type Schema = { readonly [keyword: string]: unknown };
type Header = { readonly required?: boolean; readonly schema: Schema };
type Response = {
  readonly headers: Readonly<Record<string, Header | Reference>>;
  /** Missing: no body. */
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
};
type Reference = { readonly $ref: string };
type Responses = Readonly<Record<string, Response | Reference>>;
type Described = { readonly operationId: string; readonly responses: Responses };
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: Readonly<Record<string, Header>>;
  };
  readonly "x-unrouted": { readonly responses: Responses };
};

type Judged = {
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
};

export const contract: Schema = JSON.parse(readPackageFile("dist/openapi.json"));
const { paths, components, "x-unrouted": unrouted } = contract as unknown as Document;

/** Headers of HTTP itself, which OpenAPI does not describe. */
const transportHeaders = ["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"];

const ajv = new Ajv2020({ strict: false, formats: { "date-time": isTimestamp, uuid: /^[0-9a-f-]{36}$/ } });
ajv.addSchema({ $id: "contract", ...strict({ components }) });

function isTimestamp(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text));
}

/** Returns a copy that allows no unnamed fields and whose references point into `contract`. */
function strict(schema: Schema): Schema {
  const copy = Object.entries(schema).map(([keyword, value]) => [keyword, strictValue(keyword, value)]);
  const closed = schema["type"] === "object" && schema["additionalProperties"] === undefined;
  return { ...Object.fromEntries(copy), ...(closed && { additionalProperties: false }) };
}

function strictValue(keyword: string, value: unknown): unknown {
  if (keyword === "$ref") return `contract${String(value)}`;
  if (keyword === "oneOf") return (value as readonly Schema[]).map(strict);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? strict(value as Schema) : value;
}

class Rule {
  readonly #headers: readonly (readonly [string, Header])[];
  readonly #content: Response["content"];
  readonly #isJson: boolean;
  #isBody: ValidateFunction | null = null;

  constructor({ headers, content }: Response) {
    this.#content = content;
    this.#isJson = content === undefined || "application/json" in content;
    this.#headers = Object.entries(headers).map(([name, header]) => [name.toLowerCase(), wholeHeader(header)]);
  }

  problems({ headers, text }: Judged): string[] {
    const known = [...transportHeaders, ...this.#headers.map(([name]) => name)];
    const strange = Object.keys(headers).filter((name) => !known.includes(name));
    const wrong = this.#headers.filter(([name, header]) => !isHeader(headers[name], header));
    return [
      ...strange.map((name) => `header ${name} is not documented`),
      ...wrong.map(([name]) => `header ${name} is ${String(headers[name])}`),
      ...this.#bodyProblems(text),
    ];
  }

  #bodyProblems(body: string): string[] {
    if (body === "") return [];
    if (this.#content === undefined) return ["a body is not documented"];
    const isBody = this.#validator();
    return isBody(this.#isJson ? JSON.parse(body) : body) ? [] : [ajv.errorsText(isBody.errors)];
  }

  /** Compiled when first needed: to compile all takes more than a second, in each process that runs tests. */
  #validator(): ValidateFunction {
    this.#isBody ??= ajv.compile(strict(contentSchema(this.#content)));
    return this.#isBody;
  }
}

/** A response has one type of content. */
function contentSchema(content: Response["content"]): Schema {
  return Object.values(content ?? {})[0]?.schema ?? {};
}

function wholeHeader(header: Header | Reference): Header {
  if (!("$ref" in header)) return header;
  const referenced = components.headers[header.$ref.split("/").at(-1) ?? ""];
  if (referenced === undefined) throw new Error(`the document has no ${header.$ref}`);
  return referenced;
}

function isHeader(value: string | string[] | undefined, { required, schema }: Header): boolean {
  if (value === undefined) return required !== true;
  return ajv.validate(schema, schema["type"] === "integer" ? Number(value) : value);
}

/** Rules by operation and status. */
const rules = new Map<string, Rule>();
const unseen = new Set<string>();
const violations: string[] = [];

for (const { operationId, responses } of everyOperation()) {
  for (const [status, response] of Object.entries(responses)) learn(operationId, status, response);
}

function everyOperation(): Described[] {
  const described = Object.values(paths).flatMap((methods) => Object.values(methods));
  return [...described, { operationId: "unrouted", responses: unrouted.responses }];
}

function learn(operation: string, status: string, response: Response | Reference): void {
  const whole = "$ref" in response ? components.responses[response.$ref.split("/").at(-1) ?? ""] : response;
  if (whole === undefined) throw new Error(`the document has no response for ${operation} ${status}`);
  rules.set(`${operation} ${status}`, new Rule(whole));
  for (const code of documentedCodes(whole)) unseen.add(`${operation} ${status} ${code}`.trimEnd());
}

/** Returns one empty code for a success. */
function documentedCodes({ content }: Response): readonly string[] {
  const { properties } = contentSchema(content) as { properties?: { code?: { enum: string[] } } };
  return properties?.code?.enum ?? [""];
}

/** The documented responses: operation, status and code. */
export const documented: readonly string[] = [...unseen];

const everyOperationsCodes = ["", "BAD_REQUEST", "UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "UNAVAILABLE"];

/** Returns the codes with which the operation may refuse, without the codes common to all operations. */
export function operationCodes(operation: string): readonly string[] {
  const codes = documented
    .filter((response) => response.startsWith(`${operation} `))
    .map((response) => response.split(" ")[2] ?? "");
  return codes.filter((code) => !everyOperationsCodes.includes(code));
}

export function unseenResponses(): readonly string[] {
  return [...unseen];
}

/** Returns the violations since the last call. */
export function takeViolations(): readonly string[] {
  return violations.splice(0);
}

export function judge(judged: Judged): void {
  const { method, target, status, text } = judged;
  const operation = operationAt(method, target);
  const code = status >= 400 && text.startsWith("{") ? codeIn(text) : ""; // that of a one-time code is another
  const rule = rules.get(`${operation} ${status}`);
  const problems = rule?.problems(judged) ?? ["this status is not documented"];
  violations.push(...problems.map((problem) => `${operation} returned ${status} ${code}: ${problem}`));
  unseen.delete(`${operation} ${status} ${code}`.trimEnd());
}

/** Paths with a parameter, the longest first. */
const templates = Object.keys(paths)
  .filter((path) => path.includes("{"))
  .sort((a, b) => b.length - a.length)
  .map((path) => ({ path, pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/, ".*")}$`, "s") }));

function operationAt(method: string, target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").replace(/\?.*$/s, "");
  const verb = method === "HEAD" ? "get" : method.toLowerCase();
  const fixed = path === "/v1/secrets/" ? "/v1/secrets" : path;
  const candidates = [fixed, ...templates.filter(({ pattern }) => pattern.test(path)).map((one) => one.path)];
  for (const candidate of candidates) {
    const operation = paths[candidate]?.[verb];
    if (operation !== undefined) return operation.operationId;
  }
  return "unrouted";
}

function codeIn(text: string): string {
  const { code = "" } = JSON.parse(text) as { readonly code?: string };
  return code;
}

/** Judges raw responses as far as possible: each is JSON, and an error has a text and the code of its status. */
export function judgeRaw(received: string): void {
  for (const { status, body } of rawResponses(Buffer.from(received, "latin1"))) {
    const problem = problemOfRaw(status, body);
    if (problem !== null) violations.push(`raw ${status} ${problem}`);
  }
}

function problemOfRaw(status: number, body: string): string | null {
  let json: { readonly [name: string]: unknown };
  try {
    json = JSON.parse(body);
  } catch {
    return "is not JSON";
  }
  if (status === 200) return null;
  const known = Object.entries(errorStatuses).some(([code, its]) => code === json["code"] && its === status);
  return known && typeof json["error"] === "string" ? null : "is not an error with the code of its status";
}

/** Returns the complete responses with a body at the start of the bytes. */
function rawResponses(bytes: Buffer): { readonly status: number; readonly body: string }[] {
  const end = bytes.indexOf("\r\n\r\n");
  const head = bytes.subarray(0, end).toString("latin1");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
  if (end < 0 || Number.isNaN(status)) return [];
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const rest = bytes.subarray(end + 4 + length);
  const body = bytes.subarray(end + 4, end + 4 + length);
  const whole = length > 0 && body.length === length;
  return [...(whole ? [{ status, body: body.toString("utf8") }] : []), ...rawResponses(rest)];
}
