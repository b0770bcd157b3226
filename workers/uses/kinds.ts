/** Kinds of bindings: how each makes the head of a request of the secret's value, and what it exchanges for a token. */
import type { Binding, Refusal, ResultOf } from "../protocol.js";
import { type Exchange, githubApp, headWithToken, oauth } from "./exchange.js";
import { type HeadRequest, headWithCredential } from "./head.js";
import { signHead } from "./sigv4.js";

type Kind = {
  readonly makeHead: (use: HeadRequest) => ResultOf<"render"> | Refusal;
  /** Null: the credential is made of the value alone. */
  readonly exchange: Exchange | null;
};

/** `stored`: the value itself is the credential. The others are named as their member of the binding. */
const kinds: Readonly<Record<"stored" | "githubApp" | "oauth" | "sigv4", Kind>> = {
  stored: { makeHead: (use) => headWithCredential(use, use.value), exchange: null },
  githubApp: { makeHead: (use) => headWithToken(use, githubApp), exchange: githubApp },
  oauth: { makeHead: (use) => headWithToken(use, oauth), exchange: oauth },
  sigv4: { makeHead: signHead, exchange: null },
};

export function bindingKind(binding: Binding): Kind {
  if (binding.githubApp !== undefined) return kinds.githubApp;
  if (binding.oauth !== undefined) return kinds.oauth;
  return binding.sigv4 === undefined ? kinds.stored : kinds.sigv4;
}
