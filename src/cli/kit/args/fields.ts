/** Values of secrets as text: of a JSON object, also one field of it. */
import type { Secret } from "../../../client/client.js";
import { findField } from "../../../client/fields.js";
import { CommandFailure } from "../errors.js";
import { shellWord } from "../hints.js";
import { printable } from "../output.js";
import { suggestion } from "./args.js";

/** A secret, or a field of its value. */
export type Reference = { readonly path: string; readonly field: string | null };

/** @throws CommandFailure usage, for a binary value */
export function secretText(secret: Secret): string {
  if (secret.encoding === undefined) return secret.reveal();
  const shown = printable(secret.path);
  throw new CommandFailure(
    "usage",
    `${shown} is a binary value: write it to a file with  strongroom get ${shellWord(secret.path)} -o FILE`,
  );
}

/** @throws CommandFailure usage, for a binary value; notFound, without such a field */
export function revealReference(secret: Secret, { field }: Reference): string {
  return field === null ? secretText(secret) : secretField(secret, field);
}

/** @throws CommandFailure usage, for a binary value; notFound, without such a field */
export function secretField(secret: Secret, field: string): string {
  const found = findField(secretText(secret), field);
  if (found !== null && "text" in found) return found.text;
  const problem = `${printable(secret.path)} has no field ${printable(field)}`;
  if (found === null) throw new CommandFailure("notFound", `${problem}: its value is not a JSON object`);
  const near = suggestion(field, found.names) || `: it has ${found.names.map(printable).join(", ") || "none"}`;
  throw new CommandFailure("notFound", `${problem}${near}`);
}
