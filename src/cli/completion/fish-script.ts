/** Completion script for fish. */
import { type BehindAction, type Completable, type FlagSpec, type Script, withValues } from "./command-spec.js";

export const fishScript: Script = (commands, leading) => {
  const rows = commands.flatMap(({ names, summary, flags, argument, behindActions }) => {
    const inCommand = `__strongroom_in ${names.join(" ")}`;
    const takesArgument = `${inCommand}${fishCondition(argument)}`;
    return [
      `complete -c strongroom -n __strongroom_starts -a '${names.join(" ")}' -d ${fishText(summary)}`,
      `complete -c strongroom -n '${takesArgument}'${fishCandidates(argument)}`,
      ...behindActions.map((behind) => fishBehind(inCommand, behind)),
      ...flags.map((flag) => `complete -c strongroom -n '${inCommand}'${fishFlag(flag)}`),
    ];
  });
  const before = leading.map((flag) => `complete -c strongroom -n __strongroom_starts${fishFlag(flag)}`);
  const all = ["complete -c strongroom -f", ...before, ...rows].join("\n");
  return `# completion of strongroom for fish\n${fishFunctions(leading)}${all}\n`;
};

function fishBehind(inCommand: string, { actions, kind, once }: BehindAction): string {
  const names = actions.join(" ");
  const follows = once ? `contains -- (commandline -opc)[-1] ${names}` : `__strongroom_typed_one ${names}`;
  return `complete -c strongroom -n '${inCommand}; and ${follows}'${fishCandidates(kind)}`;
}

/** An action is typed once. */
function fishCondition(argument: Completable): string {
  if (argument === "program") return "; and __strongroom_runs";
  return typeof argument === "string" ? "" : `; and not __strongroom_typed_one ${argument.join(" ")}`;
}

function fishFlag({ name, short, summary, value }: FlagSpec): string {
  const takes = value === null ? "" : `${value === "files" ? " -r" : " -x"}${fishCandidates(value)}`;
  const letter = short === null ? "" : ` -s ${short.slice(1)}`;
  return ` -l ${name.slice(2)}${letter}${takes} -d ${fishText(summary)}`;
}

const fishFunctions = (leading: readonly FlagSpec[]) => `function __strongroom_command
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case ${withValues(leading).join(" ")}
                set -e words[1]
                set -q words[1]; and set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                printf '%s\\n' $words[1]
                return
        end
    end
end
function __strongroom_starts
    not count (__strongroom_command) >/dev/null
end
function __strongroom_in
    contains -- (__strongroom_command) $argv
end
function __strongroom_typed
    commandline -ct | string replace -r '^["\\']' '' | string replace -ar '\\\\\\\\(.)' '$1'
end
function __strongroom_paths
    strongroom complete-paths $argv -- (__strongroom_typed) 2>/dev/null
end
function __strongroom_named
    set -l parts (string split -m 1 = -- (__strongroom_typed))
    test (count $parts) = 2; and string replace -r '^' "$parts[1]=" -- (strongroom complete-paths -- $parts[2] 2>/dev/null)
end
function __strongroom_typed_one
    for word in (commandline -opc)[3..-1]
        contains -- $word $argv; and return 0
    end
    return 1
end
function __strongroom_runs
    contains -- -- (commandline -opc)
end
function __strongroom_program
    set -l words (commandline -opc)
    set -e words[1..(contains -i -- -- $words)]
    complete -C (string join ' ' (string escape -- $words) (commandline -ct))
end
`;

function fishCandidates(value: Completable): string {
  if (value === "any") return "";
  if (value === "files") return " -F";
  if (value === "tokens") return " -a '(strongroom complete-paths --tokens 2>/dev/null)'";
  if (value === "trashed") return " -a '(__strongroom_paths --trash only)'";
  if (value === "restorable") return " -a '(__strongroom_paths --trash too)'";
  if (value === "paths" || value === "named") return ` -a '(__strongroom_${value})'`;
  if (value === "program") return " -a '(__strongroom_program)'";
  return ` -a '${value.join(" ")}'`;
}

function fishText(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
