/** Findings of a run of `prove`, as its JSON has them. */

export type Step = "surroundings" | "program" | "decoder" | "known-keys" | "attacker" | "canary" | "disk";
export type VaultState = "unlocked" | "locked" | null;

/** In `attacker`, `found` is the number of places that open the vault. */
export type Check = {
  readonly step: Step;
  readonly state: VaultState;
  readonly what: string;
  readonly expected: string | number;
  readonly found: string | number;
  readonly holds: boolean;
  /** The finding in words. */
  readonly detail?: string;
};

export type Verdict = "holds" | "fails" | "unknown";

/** `reason`: why the verdict is unknown, and the command that could look. */
export type Report = {
  readonly verdict: Verdict;
  readonly reason: string | null;
  readonly at: string;
  readonly checks: readonly Check[];
  readonly notShown: readonly string[];
  /** Weaknesses that no promise covers, but that decide what the promises are worth. */
  readonly weaknesses: readonly string[];
  readonly machine: Readonly<Record<string, string | number | null>>;
};

/** Why something cannot be looked at, and the command that could. The verdict is then unknown. */
export class CouldNotLook extends Error {}

export const exitCodes: Readonly<Record<Verdict, number>> = { holds: 0, fails: 12, unknown: 13 };
