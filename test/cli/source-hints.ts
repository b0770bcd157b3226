/** Commands that messages of the source advise, as a reader of the source finds them. */
import { readdirSync, readFileSync } from "node:fs";

/** Words after a command that are the message's own. */
const prose = new Set(
  (
    "again and as binds brings checks copies created does ends failed for has holds it lists listens lock makes names needs " +
    "opens or over path prints reaches redirect saves says shows stops switches takes that the them this tries to until " +
    "where which with without works writes"
  ).split(" "),
);

/** Where messages are: the command, the server and its pages, the key worker, `prove`, and the packages. */
const folders = ["src", "workers", "prove", "bin", "packages/mcp/src"];

/** Returns the source without comments; of a filled-in value, `*` is left, or the texts between which it chooses. */
function* messagesIn(folder: string): Generator<string> {
  const root = new URL(`../../../${folder}/`, import.meta.url);
  for (const file of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:c?ts|c?js|html)$/.test(file) || file.startsWith("cli/completion")) continue;
    let text = readFileSync(new URL(file, root), "utf8").replaceAll(/\/\*.*?\*\/|(?<=^|\s)\/\/.*?$/gms, "");
    for (let before = ""; before !== text; ) {
      before = text;
      text = text.replaceAll(/\$\{[^{}]*\}/g, "*");
    }
    yield text.replaceAll(/["`] \+\n\s*["`]/g, "").replaceAll(/\bexample: "/g, '"strongroom ');
  }
}

/** Returns the words of a command without what the message goes on to say. */
function cutWhereProseBegins(words: readonly string[]): string {
  const next = words.findIndex((word, i) => i > 0 && (prose.has(word.replace(/[.:]$/, "")) || word.startsWith(">")));
  const last = words.findIndex((word) => /[.:]$/.test(word));
  const end = Math.min(...[next, last + 1].filter((at) => at > 0), words.length);
  return words.slice(0, end).join(" ").replace(/[.:]$/, "");
}

/** Returns the commands, also those of help footers and examples, each once; `*` stands for a value. @param names of all commands */
export function hintsInSource(names: readonly string[]): string[] {
  const found = folders
    .flatMap((folder) => [...messagesIn(folder)])
    .flatMap((text) => {
      const hints = text.matchAll(/(?<![\w/.@-])strongroom (?:--home \* )?((?:[^\s"`;,)(\\|<]| (?! ))+)/g);
      return [...hints].map(([, words = ""]) => words.trim().split(" "));
    });
  const known = [...names, "help", "*"];
  const advised = found.filter(([name = ""]) => known.includes(name.replace(/[.:]$/, "")));
  return [...new Set(advised.map(cutWhereProseBegins))].sort();
}
