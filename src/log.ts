/**
 * Log: one line of JSON per event, from a closed set of fields, so that no body, token, passphrase, value or secret path
 * can get in. Of an error, the line has name, system code and stack frames, never the message.
 */
import { systemCode } from "./errors.js";

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

/** All fields of a line except time and level. */
type LogFields = {
  readonly event: string;
  readonly requestId?: string;
  readonly method?: string;
  /** The route's pattern, never the requested path. */
  readonly route?: string;
  readonly status?: number;
  readonly code?: string;
  readonly addresses?: number;
  readonly durationMs?: number;
  readonly count?: number;
  /** A constant sentence of the program. */
  readonly hint?: string;
  readonly error?: unknown;
};

export type Log = { readonly [L in LogLevel]: (fields: LogFields) => void } & {
  /** Whether lines of this level are written. */
  readonly writes: (level: LogLevel) => boolean;
};

export function createLog(level: LogLevel, write: (line: string) => void, now: () => number): Log {
  const line = (at: LogLevel) => (fields: LogFields) => write(logLine(at, now(), fields));
  const silent = () => {};
  const writes = (at: LogLevel) => logLevels.indexOf(at) <= logLevels.indexOf(level);
  const enabled = (at: LogLevel) => (writes(at) ? line(at) : silent);
  return { error: enabled("error"), warn: enabled("warn"), info: enabled("info"), debug: enabled("debug"), writes };
}

/** Returns one line of the log, with its line feed. */
export function logLine(level: LogLevel, now: number, fields: LogFields): string {
  const { event, requestId, method, route, status, code, addresses, durationMs, count, hint, error } = fields;
  const described = error === undefined ? undefined : describeError(error);
  const time = new Date(now).toISOString();
  const known = { event, requestId, method, route, status, code, addresses, durationMs, count, hint };
  return `${JSON.stringify({ time, level, ...known, error: described })}\n`;
}

type ErrorDescription = { name: string; system?: string; at: string[]; cause?: ErrorDescription };

function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { name: typeof error, at: [] };
  const frames = error.stack?.split("\n").filter((line) => line.startsWith("    at ")) ?? [];
  const system = systemCode(error);
  return {
    name: error.name,
    ...(system && { system }),
    at: frames.slice(0, 6).map((frame) => frame.trim().slice(3)),
    ...(error.cause !== undefined && depth < 3 && { cause: describeError(error.cause, depth + 1) }),
  };
}
