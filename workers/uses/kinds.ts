/** Kinds of bindings: how each makes the head of a request of the secret's value. */
import type { Binding, Refusal, ResultOf } from "../protocol.js";
import { type HeadRequest, headWithCredential } from "./head.js";
import { signHead } from "./sigv4.js";

type Kind = { readonly makeHead: (use: HeadRequest) => ResultOf<"render"> | Refusal };

/** `stored`: the value itself is the credential. */
const kinds = {
  stored: { makeHead: (use) => headWithCredential(use, use.value) },
  sigv4: { makeHead: signHead },
} as const satisfies Readonly<Record<string, Kind>>;

export function bindingKind(binding: Binding): Kind {
  return binding.sigv4 === undefined ? kinds.stored : kinds.sigv4;
}
