/** Text in columns of a terminal, where a character is none, one or two columns wide. */
import stringWidth from "string-width";

export { stringWidth as widthOf };

/** Fills up with spaces to `width` columns. */
export function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - stringWidth(text)));
}

/** Cuts to at most `width` columns, with an ellipsis at the cut. */
export function shortened(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let [kept, used] = ["", 1];
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += stringWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return width < 1 ? "" : `${kept.trimEnd()}…`;
}
