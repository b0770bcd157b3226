/**
 * Transit keys of an unlocked vault: named keys that encrypt and sign in the key worker and never leave it. They are sealed
 * blobs in a space of their own beside the secrets. A change of a key takes its turn; uses of a key do not wait for another.
 */
import type { Bytes, RequestOf, SharedBytes, TransitUse, VaultForm } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { NameRange } from "../paths/path-scope.js";
import type { CachedBlob } from "./cache.js";
import { always, Conflict, expectedAs, type Permit, repeating } from "./conditions.js";
import { SealedSpace, type SpaceKind, type SpaceParts } from "./space.js";

/** `form`: of one of Vault's clients. */
type Use = {
  readonly use: TransitUse;
  readonly name: string;
  readonly body: SharedBytes;
  readonly form?: VaultForm;
};
type UseReply = { readonly response: Bytes; readonly status: number };

const kind: SpaceKind = {
  space: "keys",
  notFound: (name) => new VaultError("NOT_FOUND", `there is no transit key ${name}`),
  conflict: (_, name) => changing(name),
  listed: "keys",
  describe: (names, heads) => ({ op: "listTransitKeys", names, heads }),
};

const pageNames = 1000;

export class VaultTransit {
  readonly space: SealedSpace;
  readonly #clock: Clock;

  constructor({ clock, ...parts }: SpaceParts & { readonly clock: Clock }) {
    this.space = new SealedSpace(kind, parts);
    this.#clock = clock;
  }

  /**
   * Returns the response that shows the key. `permit`: called in the name's turn, before the key is stored, since the
   * token may have been replaced by then. @throws VaultError ALREADY_EXISTS, BAD_REQUEST, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  create(name: string, body: SharedBytes, permit: Permit, form?: VaultForm): Promise<Bytes> {
    const { space } = this;
    const create = async () => {
      const [exists, now] = [(await space.whole(name)) !== null, this.#clock.now()];
      const made = await space.ask({ op: "createTransitKey", name, exists, body, now, ...(form && { form }) });
      await space.turns
        .run([name], async () => {
          permit();
          await space.replace(name, made, "absent");
        })
        .catch((error: unknown) => {
          throw error instanceof Conflict
            ? new VaultError("ALREADY_EXISTS", `a transit key ${name} already exists: rotate it, or use another name`)
            : error;
        });
      return made.response;
    };
    // DANGER: not within the name's turn: making an RSA key takes seconds.
    return space.whileUnlocked(create, body);
  }

  /** Adds a version, or changes settings; returns the response that shows the key. @throws VaultError NOT_FOUND, … as create */
  change(
    change: RequestOf<"changeTransitKey">["change"],
    name: string,
    body: SharedBytes,
    permit: Permit,
    form?: VaultForm,
  ): Promise<Bytes> {
    const { space } = this;
    const attempt = async () => {
      const blob = await this.#mustRead(name);
      const request = { op: "changeTransitKey", change, name, blob, body, now: this.#clock.now() } as const;
      const made = await space.ask({ ...request, ...(form && { form }) });
      permit();
      await space.replace(name, made, expectedAs(blob));
      return made.response;
    };
    return space.change(name, always, attempt, body);
  }

  /** @throws VaultError NOT_FOUND, INTEGRITY, VAULT_LOCKED, UNAVAILABLE */
  async show(name: string, form?: VaultForm): Promise<Bytes> {
    const request = ({ blob }: CachedBlob) => ({ op: "showTransitKey", name, blob, ...(form && { form }) }) as const;
    return (await this.space.askAbout(name, request)).response;
  }

  /** The response holds private parts: wipe it once it is sent. @throws VaultError BAD_REQUEST, … as show */
  async export(name: string, form?: VaultForm): Promise<Bytes> {
    const request = ({ blob }: CachedBlob) => ({ op: "exportTransitKey", name, blob, ...(form && { form }) }) as const;
    return (await this.space.askAbout(name, request)).response;
  }

  /** @throws VaultError BAD_REQUEST, … as show */
  remove(name: string, permit: Permit, form?: VaultForm): Promise<void> {
    return this.space.change(name, always, async () => {
      const blob = await this.#mustRead(name);
      await this.space.ask({ op: "checkTransitDeletion", name, blob, ...(form && { form }) });
      permit();
      await this.space.replace(name, null, expectedAs(blob));
    });
  }

  /** Returns the list's response in pieces. `within`: only names in these ranges. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async list(within?: readonly NameRange[]): Promise<readonly Bytes[]> {
    const pieces: Bytes[] = [];
    for await (const part of this.space.list({ prefix: "", after: "", limit: null, ...(within && { within }) }))
      pieces.push(...part.pieces);
    return pieces;
  }

  /** Returns the names behind a prefix, in ascending order. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async names(prefix: string, within?: readonly NameRange[]): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const page of this.space.pages({ prefix, after: "", ...(within && { within }) }, pageNames))
      names.push(...page);
    return names;
  }

  /**
   * Encrypts, signs and so on. The response may hold plaintext: wipe it once it is sent.
   * @throws VaultError BAD_REQUEST, … as show
   */
  async use(use: TransitUse, name: string, body: SharedBytes): Promise<Bytes> {
    return (await this.useAs({ use, name, body })).response;
  }

  /** Like `use`, in another form than the native one. `status`: the response's, where it is not 200. */
  useAs(wish: Use): Promise<UseReply> {
    const { name, body } = wish;
    const work = async () => {
      const used = await this.space.use(name, (_, found) => this.#ask(wish, found?.blob ?? null));
      if ("response" in used) return used;
      return this.space.turns.run([name], () => repeating(() => this.#reserveAndUse(wish)));
    };
    return this.space.whileUnlocked(work, body);
  }

  /** @throws VaultError BAD_REQUEST, VAULT_LOCKED */
  random(body: SharedBytes, form?: VaultForm): Promise<Bytes> {
    const { space } = this;
    const work = async () => (await space.ask({ op: "randomBytes", body, ...(form && { form }) })).response;
    return space.whileUnlocked(work, body);
  }

  /** Hashes the input of a body. @throws VaultError BAD_REQUEST, VAULT_LOCKED */
  hash(body: SharedBytes, form: VaultForm): Promise<Bytes> {
    const { space } = this;
    return space.whileUnlocked(async () => (await space.ask({ op: "hashBytes", body, form })).response, body);
  }

  /** `lacking`: messages of these versions must be reserved first. A null blob: there is no such key. */
  async #ask(wish: Use, blob: Bytes | null): Promise<UseReply | { readonly lacking: readonly number[] }> {
    const used = await this.space.ask({ op: "useTransitKey", ...wish, blob });
    if (used.response === null) return { lacking: used.lacking };
    return { response: used.response, status: used.status ?? 200 };
  }

  async #reserveAndUse(wish: Use): Promise<UseReply> {
    const { name } = wish;
    const blob = await this.#mustRead(name);
    const early = await this.#ask(wish, blob); // another use may have reserved enough
    if ("response" in early) return early;
    const reserved = await this.space.ask({ op: "reserveMessages", name, blob, versions: early.lacking });
    await this.space.replace(name, reserved, expectedAs(blob));
    const used = await this.#ask(wish, reserved.blob);
    if ("response" in used) return used;
    throw changing(name);
  }

  async #mustRead(name: string): Promise<Bytes> {
    return this.space.must(name, await this.space.whole(name));
  }
}

function changing(name: string): Conflict {
  return new Conflict("UNAVAILABLE", `another program keeps changing the transit key ${name}: try again`);
}
