/** Text in columns of a terminal, where a character is none, one or two columns wide. */
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
let widthOfAny: ((text: string) => number) | null = null;

/** The library is loaded only for what it is needed for: that takes 40 ms. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  widthOfAny ??= (require("string-width") as typeof import("string-width")).default;
  return widthOfAny(text);
}

/** Fills up with spaces to `width` columns. */
export function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** Cuts to at most `width` columns, with an ellipsis at the cut. */
export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let [kept, used] = ["", 1];
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    kept += segment;
  }
  return width < 1 ? "" : `${kept.trimEnd()}…`;
}
