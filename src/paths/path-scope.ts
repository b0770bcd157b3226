/** Scopes of paths: a text that ends in a slash is that subtree, any other is exactly that secret. */
import { compareUtf8, isSecretPath } from "./secret-path.js";

/** The paths that start with `prefix`; with `exact`, that path alone. */
export type NameRange = { readonly prefix: string; readonly exact: boolean };

/** Whether a canonical text is a valid scope. */
export function isScope(text: string): boolean {
  return isSecretPath(isSubtree(text) ? text.slice(0, -1) : text);
}

export function includesPath(ranges: readonly NameRange[], path: string): boolean {
  return ranges.some(({ prefix, exact }) => (exact ? path === prefix : path.startsWith(prefix)));
}

/** Returns the ranges of the scopes, disjoint and in ascending order of their paths' UTF-8 bytes; all paths for no scope. */
export function scopeRanges(scopes: readonly string[]): readonly NameRange[] {
  if (scopes.length === 0) return [{ prefix: "", exact: false }];
  const ranges = scopes.map((text) => ({ prefix: text, exact: !isSubtree(text) }));
  const largest = ranges.filter(({ prefix }, i) => !ranges.some((other, j) => i !== j && covers(other, prefix, j < i)));
  return largest.sort((a, b) => compareUtf8(a.prefix, b.prefix));
}

export function narrowed(ranges: readonly NameRange[], prefix: string): readonly NameRange[] {
  return ranges.flatMap((range) => {
    if (range.prefix.startsWith(prefix)) return [range];
    return !range.exact && prefix.startsWith(range.prefix) ? [{ prefix, exact: false }] : [];
  });
}

/** When two scopes are equal, the first covers the other. */
function covers({ prefix, exact }: NameRange, text: string, isFirst: boolean): boolean {
  return text === prefix ? isFirst : !exact && text.startsWith(prefix);
}

function isSubtree(scope: string): boolean {
  return scope.endsWith("/");
}
