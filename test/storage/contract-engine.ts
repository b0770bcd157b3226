/** Parts that the rules of the store contract share: engines and fault injection. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { VaultError } from "../../src/errors.js";
import type { SecretStore } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";
import { bytes } from "../support/bytes.js";
import { type Fault, faults } from "../support/failing-files.js";

/** One persistent state, opened any number of times. */
export type Engine = {
  /** Opens the state, after closing what was opened before. */
  open(): Promise<SecretStore>;
  failOnce(k: number, fault: Fault): void;
  failFrom(k: number, fault: Fault): void;
  /** Ends the fault; returns whether it occurred. */
  repair(): boolean;
};

export type Rule = { readonly name: string; readonly check: (engine: Engine) => Promise<void> };

export const header = bytes("a header");

/**
 * Runs the operation with one step after the other failing, until it has no more steps. The store that was reopened for
 * the check serves the next attempt: each opening claims the vault, with a process of its own.
 */
export async function everyStep(
  engine: Engine,
  fault: Fault,
  attempt: (store: SecretStore, withFault: WithFault) => Promise<Check>,
) {
  let occurred = true;
  let store = await engine.open();
  const { first, stride } = chooseSteps(fault);
  for (let k = first; occurred; k += stride) {
    expect(k, "steps of one operation").to.be.below(120);
    const withFault: WithFault = async (work) => {
      engine.failOnce(k, fault);
      const refused = await refusal(work);
      occurred = engine.repair();
      return refused;
    };
    const check = await attempt(store, withFault);
    store = await engine.open();
    await check(store);
  }
}

/** The codes of a system share the steps among them in the normal suite; a write that stops half-way is tried at each. */
function chooseSteps(fault: Fault): { first: number; stride: number } {
  if (fault === "SHORT" || process.env["STRONGROOM_SLOW"] !== undefined) return { first: 1, stride: 1 };
  return { first: 1 + (faults.indexOf(fault) % 2), stride: 2 };
}

/** Runs the work with the fault; returns whether it was refused. */
export type WithFault = (work: () => Promise<unknown>) => Promise<boolean>;
/** Rules that must hold after reopening. */
export type Check = (reopened: SecretStore) => Promise<void>;

/** Returns whether the store refused, which it may do with UNAVAILABLE only. */
export async function refusal(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    expect(error.code).to.equal("UNAVAILABLE");
    return true;
  }
}

export async function begin(engine: Engine): Promise<SecretStore> {
  const store = await engine.open();
  await store.startNewVault(header.slice());
  return store;
}

export async function mustRead(store: SecretStore, path: string): Promise<Bytes> {
  const blob = await store.read(path);
  if (blob === null) throw new Error(`nothing at ${path}`);
  return blob;
}

export function random(size: number): Bytes {
  return new Uint8Array(randomBytes(size));
}

export function text(content: Uint8Array | null): string {
  return content === null ? "none" : Buffer.from(content).toString("utf8");
}
