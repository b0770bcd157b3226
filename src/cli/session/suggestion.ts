/** Suggestion for a misspelled name: `. Did you mean ls?`, or nothing. */
import { closestMatch } from "leven";
import { printable } from "./output.js";

export function suggestion(wrong: string, names: readonly string[]): string {
  const near = closestMatch(wrong, names, { maxDistance: Math.floor((wrong.length + 1) / 3) });
  return near === undefined ? "" : `. Did you mean ${printable(near)}?`;
}
