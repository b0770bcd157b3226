/** Masking of credentials in what tools return: an upstream or a program may repeat what it was sent. */
import type { StrongroomClient } from "../../../src/client/client.js";
import type { Scope } from "./broker.js";

/** Shorter values would match everywhere. */
const minBytes = 4;

export type Mask = {
  /** What is hidden. */
  readonly forms: readonly string[];
  /** @param isCut whether the text's end was cut off, where a part of a value could stand */
  hide(text: string, isCut?: boolean): string;
};

/** Knows the values that the agent's requests may carry, as they are now, and those of an earlier mask. */
export async function maskOf(client: StrongroomClient, scope: Scope, earlier?: Mask): Promise<Mask> {
  const { uses } = await client.listUses();
  const bound = uses.filter(({ path }) => isWithin(scope, path));
  const secrets = await client.getMany([...new Set(bound.map(({ path }) => path))]);
  const users = new Set(["", ...bound.flatMap(({ basic }) => (basic === undefined ? [] : [`${basic}:`]))]);
  const values = secrets.flatMap((secret) => (secret === undefined ? [] : [Buffer.from(secret.revealBytes())]));
  const forms = values.flatMap((value) =>
    [...users].flatMap((user) => formsOf(Buffer.concat([Buffer.from(user), value]))),
  );
  const all = [...new Set([...forms, ...(earlier?.forms ?? [])])];
  const hidden = all.filter(({ length }) => length >= minBytes).sort((a, b) => b.length - a.length);
  const longest = hidden[0]?.length ?? 0;
  return {
    forms: hidden,
    hide: (text, isCut = false) => {
      const masked = hidden.reduce((shown, form) => shown.replaceAll(form, "***"), text);
      return isCut ? masked.slice(0, Math.max(0, masked.length - longest)) : masked;
    },
  };
}

export function isWithin({ paths }: Scope, path: string): boolean {
  return paths.length === 0 || paths.some((scope) => path === scope || (scope.endsWith("/") && path.startsWith(scope)));
}

/** As it is, in JSON, in URLs, and in the usual encodings; base64 without its last characters, which depend on what follows. */
function formsOf(value: Buffer): string[] {
  const text = value.toString("utf8");
  const shifted = [0, 1, 2].map((shift) => Buffer.concat([Buffer.alloc(shift), value]).toString("base64"));
  const base64 = shifted.map((encoded, shift) => encoded.replace(/.?=*$/, "").slice(shift === 0 ? 0 : shift + 1));
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    value.toString("hex"),
    value.toString("hex").toUpperCase(),
    ...base64,
    ...base64.map((encoded) => encoded.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}
