/** Requests that wait for a person's approval, and what was approved for longer than one request. */
import { hash, randomUUID } from "node:crypto";
import type { Binding } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Program } from "./peer-program.js";

/** How long a request waits, in milliseconds. */
const waitMs = 60_000;

/** Limit of waiting requests of a token and its child tokens: a program must not fill the memory or the terminal. */
const mostWaiting = 16;

/** Longest query that is shown, in characters. */
const maxQuery = 1024;

/** Times are ISO 8601 UTC with milliseconds. All that a person is shown, and all of a request's line that is sent. */
type ShownApproval = {
  readonly id: string;
  readonly token: string;
  readonly path: string;
  readonly method: string;
  readonly scheme: "https";
  readonly host: string;
  readonly port: number;
  /** The request's path. */
  readonly target: string;
  /** Without `?`. */
  readonly query: string | { readonly length: number; readonly sha256: string };
  readonly program: Program | null;
  readonly since: string;
};

/** `target`: with its query, as it is sent; `tree`: see `Session`. */
type Asked = Pick<ShownApproval, "token" | "path" | "method" | "host" | "port" | "target"> & {
  readonly tree: string;
  readonly findProgram: () => Promise<Program | null>;
};

/** Decision of a person; `for`: seconds, or one of the names. */
type Decision = { readonly approve: boolean; readonly for: number | "request" | "session" };

export type ApprovalOutcome = "approved" | "refused" | "late" | "full";

/** `shown`: null until it is known which program asks. */
type Waiting = {
  readonly asked: Asked;
  shown: ShownApproval | null;
  readonly decide: (decision: Decision | null) => void;
};

export class Approvals {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Waiting>();
  /** Approvals that are remembered: since when, in monotonic milliseconds, and for how long; by token, path, host and port. */
  readonly #remembered = new Map<string, { readonly at: number; readonly seconds: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  list(): readonly ShownApproval[] {
    return [...this.#waiting.values()].flatMap(({ shown }) => shown ?? []);
  }

  /** Resolves to whether the request may continue, immediately where it was approved before. */
  async ask(asked: Asked, { ask }: Pick<Binding, "ask">): Promise<ApprovalOutcome> {
    const key = [asked.token, asked.path, asked.host, asked.port].join("\n");
    if (this.#isRemembered(key, ask)) return "approved";
    const waiting = [...this.#waiting.values()].filter((one) => one.asked.tree === asked.tree);
    if (waiting.length >= mostWaiting) return "full";
    const decision = await this.#wait(asked);
    if (decision === null) return "late";
    if (!decision.approve) return "refused";
    const seconds = approvalSeconds(decision.for, ask);
    if (seconds > 0) this.#remembered.set(key, { at: this.#clock.elapsed(), seconds });
    return "approved";
  }

  /** The binding may have been changed since: its `ask` counts as it is now. */
  #isRemembered(key: string, ask: string): boolean {
    const found = this.#remembered.get(key);
    if (found === undefined) return false;
    return this.#clock.elapsed() < found.at + approvalSeconds(found.seconds, ask) * 1000;
  }

  /** @throws VaultError NOT_FOUND */
  decide(id: string, decision: Decision): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      throw new VaultError("NOT_FOUND", "no request waits for this approval: it was decided, or waited too long");
    }
    waiting.decide(decision);
  }

  /** Forgets what was approved for a session, and refuses what waits. */
  end(token: string): void {
    for (const key of this.#remembered.keys()) if (key.startsWith(`${token}\n`)) this.#remembered.delete(key);
    for (const { asked, decide } of this.#waiting.values()) if (asked.token === token) decide(null);
  }

  /** Refuses what waits: the requests are gone. */
  cancel(): void {
    for (const { decide } of this.#waiting.values()) decide(null);
  }

  #wait(asked: Asked): Promise<Decision | null> {
    const id = randomUUID();
    const since = new Date(this.#clock.now()).toISOString();
    return new Promise((resolve) => {
      const decide = (decision: Decision | null) => {
        cancel();
        this.#waiting.delete(id);
        resolve(decision);
      };
      const cancel = this.#clock.after(waitMs, () => decide(null));
      const waiting: Waiting = { asked, shown: null, decide };
      this.#waiting.set(id, waiting);
      void asked.findProgram().then((program) => {
        waiting.shown = shownApproval(asked, { id, program, since });
      });
    });
  }
}

function shownApproval(
  { token, path, method, host, port, target: whole }: Asked,
  { id, program, since }: Pick<ShownApproval, "id" | "program" | "since">,
): ShownApproval {
  const end = whole.includes("?") ? whole.indexOf("?") : whole.length;
  const [target, text] = [whole.slice(0, end), whole.slice(end + 1)];
  const query = text.length <= maxQuery ? text : { length: text.length, sha256: hash("sha256", text) };
  return { id, token, path, method, scheme: "https", host, port, target, query, program, since };
}

/** An approval never lasts longer than the binding's `ask` says. */
function approvalSeconds(wanted: Decision["for"], ask: string): number {
  if (ask === "request" || wanted === "request") return 0;
  const most = ask === "session" ? Number.POSITIVE_INFINITY : durationSeconds(ask);
  return Math.min(wanted === "session" ? Number.POSITIVE_INFINITY : wanted, most ?? 0);
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Returns the seconds of a duration such as `10m`; null for any other text. */
export function durationSeconds(text: string): number | null {
  const [, number, unit = ""] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  return number === undefined ? null : Number(number) * (unitSeconds[unit] ?? 0);
}
