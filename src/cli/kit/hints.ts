/** Commands that messages advise: they carry the connection flags of this call, without which they act on the default vault. */
import { quoted } from "../../files/home.js";
import { type Hints, printable } from "./output.js";

/** Commands of a home: they take `--home`, and no address. */
const ofHome = new Set(["serve", "up", "config", "doctor", "prove", "restore"]);
/** Commands without any connection. */
const withoutConnection = new Set(["help", "version", "completion", "allow", "migrate", "service", "flags"]);

const flagNames = ["--home", "--address", "--token-file", "--cacert"] as const;

/** `args`: of this call. `names`: of all commands. */
export function createHints(args: readonly string[], names: readonly string[]): Hints {
  const given = flagNames.map((flag) => [flag, givenValue(args, flag)] as const);
  const words = given.flatMap(([flag, value]) =>
    value === undefined ? [] : [[flag, ` ${flag} ${shellWord(value)}`] as const],
  );
  if (words.length === 0) return (message) => message;
  const advised = new RegExp(`(?<=^|[\\s("'])strongroom (?=(${names.join("|")})(?![\\w-]))`, "gm");
  return (message) => message.replace(advised, (_, name: string) => `strongroom${flagsFor(name, words)} `);
}

/** Quotes a word; characters that could mislead on a terminal are escaped as shells take them in $'…'. */
export function shellWord(text: string): string {
  if (printable(text) === text) return quoted(text);
  const escaped = [...text].map((character) => {
    const isPlain = printable(character) === character && !"'\\".includes(character);
    return isPlain ? character : `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`;
  });
  return `$'${escaped.join("")}'`;
}

/** Quotes the name of a folder, which ends in a slash. */
export function folderWord(path: string): string {
  return shellWord(`${path}/`);
}

function flagsFor(name: string, words: readonly (readonly [flag: string, text: string])[]): string {
  const isTaken = (flag: string) => !withoutConnection.has(name) && (flag === "--home" || !ofHome.has(name));
  return words.flatMap(([flag, text]) => (isTaken(flag) ? [text] : [])).join("");
}

/** Returns the value of a flag before the `--` that begins another program's arguments. */
function givenValue(args: readonly string[], flag: string): string | undefined {
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  const joined = own.find((word) => word.startsWith(`${flag}=`));
  const at = own.indexOf(flag);
  return joined?.slice(flag.length + 1) ?? (at === -1 ? undefined : own[at + 1]);
}
