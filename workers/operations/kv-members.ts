/** Members of bodies for Vault's KV engine that are refused. */
import { memberName } from "../json/json-object.js";
import type { Member } from "../json/json-reader.js";
import { decodeText } from "../memory.js";
import { type Members, memberRefusal } from "../vault-members.js";

/** Returns why a member is refused; null: none is. */
export function refusedMember(members: readonly Member[], known: Members): string | null {
  for (const { name, value } of members) {
    const text = memberName({ name, value });
    if (typeof known.get(text) !== "object") continue;
    const problem = memberRefusal(known, text, value.length < 64 ? JSON.parse(decodeText(value)) : "a long text");
    if (problem !== null) return problem;
  }
  return null;
}
