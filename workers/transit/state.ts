/** What the key worker holds for transit keys as long as it holds a master key. */
import { Turns } from "../turns.js";
import { KnownKeys } from "./known-keys.js";
import { Messages } from "./messages.js";
import { PrivateKeys } from "./private-keys.js";

export class TransitState {
  readonly messages = new Messages();
  readonly knownKeys = new KnownKeys();
  readonly privateKeys = new PrivateKeys();
  /** RSA keys are made one at a time. */
  readonly generations = new Turns();

  forget(): void {
    this.messages.clear();
    this.knownKeys.clear();
    this.privateKeys.clear();
  }
}
