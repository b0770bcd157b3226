/** Search for known secrets: in the forms that programs write bytes in, and every 8-byte piece of them. */
import type { MemoryCopy } from "./memory.js";

/** `whole`: an occurrence of the secret in some form; else a piece of 8 bytes. */
type Pattern = { readonly secret: Secret; readonly bytes: Buffer; readonly form: string; readonly at: number };

/**
 * `isText`: a piece of it may stand in a program's files by chance. `pieceBytes`: 0 looks for whole copies only. `pieceStep`:
 * bytes from one piece to the next, 1 unless given; long keys are searched for in steps.
 */
export type Secret = {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly isText: boolean;
  readonly pieceBytes: number;
  readonly pieceStep?: number;
};

/** `copies`: whole ones, with their forms. `pieces`: runs of `pieceBytes` or more that belong to no whole copy. */
export type Found = { readonly copies: readonly string[]; readonly pieces: number };

export const fewestBytes = 8;

type Hit = { readonly pattern: Pattern; readonly address: number };

export class SecretSearch {
  readonly #secrets: readonly Secret[];
  readonly #patterns = new Map<number, Pattern[]>();
  readonly #starts = new Uint8Array(65_536);
  #hits: Hit[] = [];

  /** Secrets shorter than 8 bytes cannot be told from other memory, and are left out. */
  constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets.filter(({ bytes }) => bytes.length >= fewestBytes);
    for (const secret of this.#secrets) {
      const pieces = secret.pieceBytes === 0 ? [] : secretPieces(secret);
      for (const pattern of [...wholeForms(secret), ...pieces]) this.#add(pattern);
    }
  }

  #add(pattern: Pattern): void {
    const start = pattern.bytes.readUInt16LE(0);
    this.#starts[start] = 1;
    this.#patterns.set(start, [...(this.#patterns.get(start) ?? []), pattern]);
  }

  searchCopy({ bytes, regions }: MemoryCopy): void {
    for (const { address, offset, length } of regions) this.search(bytes.subarray(offset, offset + length), address);
  }

  /** Searches bytes; `address` tells the places of several calls apart. */
  search(bytes: Uint8Array, address: number): void {
    const starts = this.#starts;
    let previous = bytes[0] ?? 0;
    for (let i = 1; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      const start = previous | (byte << 8);
      if (starts[start] === 1) this.#compare(bytes, i - 1, address, start);
      previous = byte;
    }
  }

  #compare(bytes: Uint8Array, at: number, address: number, start: number): void {
    const memory = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const pattern of this.#patterns.get(start) ?? []) {
      const end = at + pattern.bytes.length;
      if (end <= memory.length && pattern.bytes.compare(memory, at, end) === 0) {
        this.#hits.push({ pattern, address: address + at });
      }
    }
  }

  /**
   * Returns what was found of each secret since the last call.
   * @param isPublic - returns whether a piece of a text also stands in public files, and so proves nothing
   */
  take(isPublic: (piece: Buffer) => boolean = () => false): (readonly [secret: Secret, found: Found])[] {
    const results = this.#secrets.map((secret) => [secret, this.#countCopies(secret, isPublic)] as const);
    this.#hits = [];
    return results;
  }

  #countCopies(secret: Secret, isPublic: (piece: Buffer) => boolean): Found {
    const hits = this.#hits.filter(({ pattern }) => pattern.secret === secret);
    const whole = hits.filter(({ pattern }) => pattern.form !== "");
    const raw = new Set(whole.filter(({ pattern }) => pattern.form === "raw").map(({ address }) => address));
    const pieces = hits.filter(({ pattern, address }) => pattern.form === "" && !raw.has(address - pattern.at));
    const telling = pieces.filter(({ pattern }) => !(secret.isText && isPublic(pattern.bytes)));
    const starts = new Set(telling.map(({ address, pattern }) => address - pattern.at)); // pieces of one copy share it
    return { copies: whole.map(({ pattern }) => pattern.form), pieces: starts.size };
  }
}

function wholeForms(secret: Secret): Pattern[] {
  const bytes = Buffer.from(secret.bytes);
  const texts: [string, string][] = [
    ["hex", bytes.toString("hex")],
    ["HEX", bytes.toString("hex").toUpperCase()],
    ["base64", withoutLast(bytes.toString("base64"))],
    ["base64url", withoutLast(bytes.toString("base64url"))],
  ];
  const raw: [string, string] = ["raw", bytes.toString("latin1")];
  const forms = new Map<string, [string, Buffer]>();
  for (const [form, text] of [raw, ...texts]) {
    for (const [suffix, encoding] of [
      ["", "latin1"],
      [" in UTF-16", "utf16le"],
    ] as const) {
      const encoded = Buffer.from(text, encoding);
      const key = encoded.toString("latin1");
      if (!forms.has(key)) forms.set(key, [form + suffix, encoded]);
    }
  }
  if (secret.isText) {
    const wide = Buffer.from(bytes.toString("utf8"), "utf16le");
    forms.set(wide.toString("latin1"), ["text in UTF-16", wide]);
  }
  return [...forms.values()].map(([form, encoded]) => ({ secret, bytes: encoded, form, at: 0 }));
}

/** The last character of base64 depends on the bytes that follow. */
function withoutLast(base64: string): string {
  return base64.replace(/.?=*$/, "");
}

function secretPieces(secret: Secret): Pattern[] {
  const bytes = Buffer.from(secret.bytes);
  const { pieceBytes, pieceStep = 1 } = secret;
  const count = Math.max(0, Math.floor((bytes.length - pieceBytes) / pieceStep) + 1);
  return Array.from({ length: count }, (_, i) => {
    const at = i * pieceStep;
    return { secret, bytes: bytes.subarray(at, at + pieceBytes), form: "", at };
  });
}
