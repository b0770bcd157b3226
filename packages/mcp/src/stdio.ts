/**
 * JSON-RPC 2.0 on standard input and output, one message a line. What is no valid message gets an error, with the id `null`
 * where it has none: a client that gets nothing waits for ever.
 */
import type { Readable, Writable } from "node:stream";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  ErrorCode,
  type JSONRPCMessage,
  JSONRPCNotificationSchema,
  JSONRPCRequestSchema,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";

const maxLineBytes = 10 * 1024 * 1024;
const maxBatch = 1000;

/** The only version of the protocol with batches. */
const batchVersion = "2025-03-26";

type Response = { readonly jsonrpc: "2.0"; readonly id: RequestId | null; readonly [member: string]: unknown };

/** Requests of a batch that wait for their responses, and the responses so far. */
type Batch = { readonly waiting: RequestId[]; readonly responses: object[] };

export class StdioTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onerror?: Transport["onerror"];
  onclose?: Transport["onclose"];
  readonly #input: Readable;
  readonly #output: Writable;
  /** Bytes of a line that has not ended yet. */
  #pieces: Buffer[] = [];
  #length = 0;
  /** Id of the request `initialize`, until its response. */
  #initializing: RequestId | null = null;
  /** Protocol version that `initialize` has agreed upon. */
  #version: unknown = null;
  readonly #batches = new Set<Batch>();
  readonly #take = (chunk: Buffer) => this.#read(chunk);

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
  }

  async start(): Promise<void> {
    this.#input.on("data", this.#take).on("error", (error) => this.onerror?.(error));
  }

  async close(): Promise<void> {
    this.#input.off("data", this.#take).pause();
    this.onclose?.();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ("method" in message || message.id === undefined) return this.#write(message);
    this.#learnVersion(message);
    const batch = [...this.#batches].find(({ waiting }) => waiting.includes(message.id as RequestId));
    if (batch === undefined) return this.#write(message);
    batch.responses.push(message);
    return this.#settle(batch, message.id);
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      this.#receive(Buffer.concat([...this.#pieces, chunk.subarray(start, end)]));
      [this.#pieces, this.#length] = [[], 0];
      start = end + 1;
    }
    this.#pieces.push(chunk.subarray(start));
    this.#length += chunk.length - start;
    if (this.#length > maxLineBytes) this.#refuseLongLine();
  }

  #refuseLongLine(): void {
    [this.#pieces, this.#length] = [[], 0];
    void this.#write(invalid(null, `a message has more than ${maxLineBytes} bytes`));
    this.onerror?.(new Error("a message is too long"));
    void this.close();
  }

  /** A line of white space alone is no message. */
  #receive(line: Buffer): void {
    const value = parse(line);
    if (value === "blank") return;
    if (value === "unreadable") {
      void this.#write(failure(null, ErrorCode.ParseError, "Parse error: the line is not JSON in UTF-8"));
    } else if (Array.isArray(value.json)) this.#receiveBatch(value.json);
    else {
      const problem = invalidMessage(value.json);
      if (problem === null) this.#deliver(value.json as JSONRPCMessage);
      else void this.#write(problem);
    }
  }

  #receiveBatch(messages: readonly unknown[]): void {
    const problem = this.#problemOfBatch(messages);
    if (problem !== null) return void this.#write(invalid(null, problem));
    const batch: Batch = { waiting: [], responses: [] };
    const valid: JSONRPCMessage[] = [];
    for (const message of messages) {
      const refusal = invalidMessage(message) ?? refusedInBatch(message);
      if (refusal !== null) batch.responses.push(refusal);
      else valid.push(message as JSONRPCMessage);
    }
    for (const message of valid) if ("method" in message && "id" in message) batch.waiting.push(message.id);
    this.#batches.add(batch);
    void this.#settle(batch); // before anything is delivered: a response may come while a message is
    for (const message of valid) this.#deliver(message);
  }

  #problemOfBatch({ length }: readonly unknown[]): string | null {
    if (this.#version !== batchVersion) return "only version 2025-03-26 of the protocol has batches";
    if (length === 0) return "a batch must not be empty";
    return length > maxBatch ? `a batch has at most ${maxBatch} messages` : null;
  }

  #deliver(message: JSONRPCMessage): void {
    const id = "method" in message && "id" in message ? message.id : null;
    if (id !== null && "method" in message && message.method === "initialize") this.#initializing = id;
    try {
      this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error("a message could not be handled"));
      if (id !== null) void this.send({ jsonrpc: "2.0", id, error: internalError });
    }
    this.#forgetCancelled(message);
  }

  /** A cancelled request gets no response: its batch must not wait for it. */
  #forgetCancelled(message: JSONRPCMessage): void {
    if (!("method" in message) || message.method !== "notifications/cancelled") return;
    const id = message.params?.["requestId"] as RequestId;
    for (const batch of this.#batches) void this.#settle(batch, id);
  }

  /** Sends the responses of a batch once there is one for each request; none where it has only notifications. */
  async #settle(batch: Batch, id?: RequestId): Promise<void> {
    const at = id === undefined ? -1 : batch.waiting.indexOf(id);
    if (at !== -1) batch.waiting.splice(at, 1);
    if (batch.waiting.length > 0 || !this.#batches.delete(batch) || batch.responses.length === 0) return;
    await this.#write(batch.responses);
  }

  #learnVersion(message: JSONRPCMessage): void {
    if (!("result" in message) || message.id !== this.#initializing) return;
    this.#initializing = null;
    this.#version = message.result["protocolVersion"];
  }

  #write(message: object): Promise<void> {
    return new Promise((resolve) => {
      if (this.#output.write(`${JSON.stringify(message)}\n`)) resolve();
      else this.#output.once("drain", resolve);
    });
  }
}

function parse(line: Buffer): { readonly json: unknown } | "blank" | "unreadable" {
  try {
    const text = new TextDecoder("utf8", { fatal: true }).decode(line);
    return text.trim() === "" ? "blank" : { json: JSON.parse(text) as unknown };
  } catch {
    return "unreadable";
  }
}

/** Returns the error for what is no valid message; null for a valid one, and for a response, which is never answered. */
function invalidMessage(value: unknown): Response | null {
  if (JSONRPCRequestSchema.safeParse(value).success || JSONRPCNotificationSchema.safeParse(value).success) return null;
  if (!isObject(value)) return invalid(null, "a message must be an object");
  if (value["method"] === undefined && ("result" in value || "error" in value)) return null;
  const { id } = value;
  const known = typeof id === "string" || typeof id === "number" ? id : null;
  return invalid(known, rules.find(({ isKept }) => !isKept(value))?.text ?? "a member is unknown or has a wrong form");
}

type Members = { readonly [member: string]: unknown };

const rules: readonly { readonly text: string; readonly isKept: (message: Members) => boolean }[] = [
  { text: 'jsonrpc must be "2.0"', isKept: ({ jsonrpc }) => jsonrpc === "2.0" },
  { text: "method must be a text", isKept: ({ method }) => typeof method === "string" },
  {
    text: "id must be a text or a whole number",
    isKept: ({ id }) => id === undefined || typeof id === "string" || Number.isSafeInteger(id),
  },
  { text: "params must be an object", isKept: ({ params }) => params === undefined || isObject(params) },
];

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refusedInBatch(message: unknown): Response | null {
  const { id = null, method } = message as { readonly id?: RequestId; readonly method?: unknown };
  return method === "initialize" ? invalid(id, "initialize must not be in a batch") : null;
}

const internalError = { code: ErrorCode.InternalError, message: "Internal error" };

function invalid(id: RequestId | null, problem: string): Response {
  return failure(id, ErrorCode.InvalidRequest, `Invalid request: ${problem}`);
}

function failure(id: RequestId | null, code: number, message: string): Response {
  return { jsonrpc: "2.0", id, error: { code, message } };
}
