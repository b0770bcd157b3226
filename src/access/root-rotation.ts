/** Rotation of the root token on a running server: its file first, then memory. */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Credentials } from "./credentials.js";
import { oneAtATime } from "./in-turn.js";
import { type Token, writeNewToken } from "./root-token.js";

export class RootRotation {
  readonly #file: string | null;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #inTurn = oneAtATime();

  constructor({ file }: Token, credentials: Credentials, clock: Clock) {
    this.#file = file;
    this.#credentials = credentials;
    this.#clock = clock;
  }

  /** The old text stays valid for the overlap, or until the server stops. @throws VaultError BAD_REQUEST, UNAVAILABLE */
  rotate(overlapSeconds: number): Promise<string> {
    const file = this.#file;
    if (file === null) {
      throw new VaultError("BAD_REQUEST", "the root token comes from STRONGROOM_TOKEN: change it there, then restart");
    }
    return this.#inTurn(async () => {
      const text = await writeNewToken(file).catch((cause: unknown) => {
        throw new VaultError("UNAVAILABLE", "the token file cannot be written: the old token stays valid", { cause });
      });
      this.#credentials.replaceRoot(text, this.#clock.now() + overlapSeconds * 1000);
      return text;
    });
  }
}
