/** The documents of the repository, and the code blocks in them. */
import { readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export const documentFiles: readonly string[] = [
  "README.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "packages/client/README.md",
  "packages/mcp/README.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name))
    .sort(),
];

/** A fenced block. `file` is what stands behind the language: the name under which the page uses the block's text. */
export type Block = {
  readonly language: string;
  readonly file: string | null;
  /** Why its commands are not run: the text of a comment `<!-- not run: … -->` in the line before it. */
  readonly notRun: string | null;
  readonly code: string;
  /** Offset of the code in the page's text. */
  readonly at: number;
};

export function blocksIn(text: string): Block[] {
  return [...text.matchAll(/(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)(?: (\S+))?\n(.*?)^```$/gms)].map((match) => {
    const [whole, notRun = null, language = "", file = null, code = ""] = match;
    return { language, file, notRun, code, at: match.index + whole.length - code.length - 3 };
  });
}

/** The heading's anchor, as GitHub makes it. */
export function headingAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

export function headingsIn(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
}

export type Link = { readonly path: string; readonly anchor: string | null };

/** The links of a document within the repository. */
export function linksIn(file: string, text: string): Link[] {
  return [...text.matchAll(/\]\(([^:)#]*)(?:#([^)]+))?\)/g)].map(([, target = "", anchor = null]) => {
    return { path: target === "" ? file : normalize(join(dirname(file), target)), anchor };
  });
}
