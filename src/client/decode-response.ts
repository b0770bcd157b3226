/** Owns what the server's answers become: the contract's objects, or an error. Their bytes are wiped. */

import type { Failure, Refusal } from "./api-types.js";
import { StrongroomError } from "./client-error.js";
import type { Place } from "./discovery.js";
import type { Received } from "./request.js";

/** @throws StrongroomError the server's, or PROTOCOL when it is no answer of a Strongroom server. */
export function answerIn<T extends object>(received: Received, place: Place): T {
  const answer = objectIn(received);
  if (answer !== null && received.status === 200) return answer as T;
  if (answer !== null && isError(answer)) throw errorOf(received, answer, place);
  throw new StrongroomError(
    "PROTOCOL",
    `what answers at ${place.address.origin} is no Strongroom server of this version: see that the address is right`,
    { status: received.status },
  );
}

type ErrorAnswer = Pick<Refusal, "error" | "credential"> & {
  readonly code: Refusal["code"] | Failure["code"];
  readonly requestId?: string;
};

function objectIn({ body }: Received): object | null {
  try {
    const json: unknown = JSON.parse(body.toString("utf8"));
    return typeof json === "object" && json !== null ? json : null;
  } catch {
    return null;
  } finally {
    body.fill(0);
  }
}

function isError(answer: object): answer is ErrorAnswer {
  const { error, code } = answer as Partial<ErrorAnswer>;
  return typeof error === "string" && typeof code === "string";
}

function errorOf({ status, headers }: Received, answer: ErrorAnswer, place: Place): StrongroomError {
  const { error, code, requestId, credential } = answer;
  const seconds = Number(headers["retry-after"]);
  const retryAfter = Number.isInteger(seconds) ? seconds : undefined;
  return new StrongroomError(code, `${error}${hint(answer, retryAfter, place)}`, {
    status,
    retryAfter,
    requestId,
    credential,
  });
}

function hint({ credential }: ErrorAnswer, retryAfter: number | undefined, { tokenSource }: Place): string {
  if (credential === "token" && tokenSource === "STRONGROOM_TOKEN") {
    return ": STRONGROOM_TOKEN is not what this server wants, unset it or put the right token into it";
  }
  if (credential === "token")
    return `: ${tokenSource} is not what this server wants, name the right file with STRONGROOM_TOKEN_FILE`;
  return retryAfter === undefined ? "" : ` (${retryAfter} s)`;
}
