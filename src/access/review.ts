/**
 * Access of the review page: a code that works once, within a minute, and the token that it is traded for, which can show
 * no secret and ends with the page, or after 15 minutes. A lock and a new vault end both.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Observer, VaultEvent } from "../observer.js";
import { scopeRanges } from "../paths/path-scope.js";
import type { Credentials } from "./credentials.js";
import type { Scope } from "./scopes.js";
import type { TokenRecord } from "./token-record.js";

const codeSeconds = 60;
const tokenMs = 15 * 60_000;
/** A page must open its stream of figures within this time, by which the server knows that it is open. */
const unopenedMs = 10_000;

const pageScopes: readonly Scope[] = ["metrics", "audit", "lock"];

/** A space: no client token can have this name. */
const reviewName = "review page";

export class ReviewAccess implements Observer {
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #isAlwaysOn: boolean;
  #code: { readonly digest: Buffer; readonly until: number } | null = null;
  #session: { readonly key: string; readonly until: number; isOpen: boolean } | null = null;

  /** `isAlwaysOn`: the page is served without a code or token, too. */
  constructor(credentials: Credentials, clock: Clock, isAlwaysOn: boolean) {
    this.#credentials = credentials;
    this.#clock = clock;
    this.#isAlwaysOn = isAlwaysOn;
  }

  /** Whether the page's files are served: from the creation of a code until it has expired, or its token has ended. */
  get isOn(): boolean {
    const now = this.#clock.now();
    return this.#isAlwaysOn || [this.#code, this.#session].some((each) => each !== null && now < each.until);
  }

  /** Makes a code; an earlier one no longer works. */
  createCode(): { readonly code: string; readonly expiresInSeconds: number } {
    const code = randomBytes(32).toString("base64url");
    this.#code = { digest: codeDigest(code), until: this.#clock.now() + codeSeconds * 1000 };
    return { code, expiresInSeconds: codeSeconds };
  }

  /** Trades the code for a token; the page that was open before ends. @throws VaultError UNAUTHORIZED */
  trade(code: string): { readonly token: string; readonly expiresAt: string } {
    const expected = this.#code;
    const isRight = expected !== null && timingSafeEqual(codeDigest(code), expected.digest);
    if (!isRight || this.#clock.now() >= expected.until)
      throw new VaultError("UNAUTHORIZED", "the code is wrong, used or expired: run  strongroom review  again");
    this.#code = null;
    this.end();
    const token = `srp_${randomBytes(32).toString("base64url")}`;
    const until = this.#clock.now() + tokenMs;
    this.#session = {
      key: this.#credentials.addSession(token, sessionRecord(until, pageScopes), until),
      until,
      isOpen: false,
    };
    const { key } = this.#session;
    this.#clock.after(unopenedMs, () => this.#endUnopened(key));
    return { token, expiresAt: new Date(until).toISOString() };
  }

  /** Makes a token that can list and read, for the server's own gets during a storm; `end` ends it. */
  createReader(): { readonly token: string; readonly end: () => void } {
    const token = `srp_${randomBytes(32).toString("base64url")}`;
    const until = this.#clock.now() + tokenMs;
    const key = this.#credentials.addSession(token, sessionRecord(until, ["list", "get"]), until, scopeRanges([]));
    return { token, end: () => this.#credentials.endSession(key) };
  }

  /** The page of this token reads the stream of figures. */
  opened(key: string): void {
    if (this.#session?.key === key) this.#session.isOpen = true;
  }

  /** The page of this token was closed. */
  closed(key: string): void {
    if (this.#session?.key === key) this.end();
  }

  end(): void {
    if (this.#session !== null) this.#credentials.endSession(this.#session.key);
    this.#session = null;
  }

  vaultEvent({ event }: VaultEvent): void {
    if (event !== "lock" && event !== "init" && event !== "stop") return;
    this.#code = null;
    this.end();
  }

  #endUnopened(key: string): void {
    if (this.#session?.isOpen === false) this.closed(key);
  }
}

function codeDigest(text: string): Buffer {
  return Buffer.from(hash("sha256", text, "hex"), "hex");
}

function sessionRecord(expiresAt: number, can: readonly Scope[]): TokenRecord {
  const now = expiresAt - tokenMs;
  const times = { createdAt: now, ttlSeconds: tokenMs / 1000, expiresAt };
  return { name: reviewName, can, paths: [], ...times, digest: "", former: [], mac: "" };
}
