/**
 * Completion scripts for bash, zsh and fish. Commands and flags are in the script; only the paths of secrets need a
 * process, `strongroom complete-paths`.
 */

/** Paths of secrets, `NAME=path`, names of files, a program with its own arguments, nothing, or one of these words. */
export type Completable = "paths" | "named" | "files" | "program" | "any" | readonly string[];

export type FlagSpec = {
  readonly name: string;
  /** `-o`; null for a flag that has only a long name. */
  readonly short: string | null;
  readonly summary: string;
  /** Null for a flag without a value. */
  readonly value: Completable | null;
};

export type CommandSpec = {
  readonly names: readonly string[];
  readonly summary: string;
  readonly flags: readonly FlagSpec[];
  readonly argument: Completable;
};

/** `leading`: the flags that may come before the command's name. */
type Script = (commands: readonly CommandSpec[], leading: readonly FlagSpec[]) => string;

const bash: Script = (commands, leading) => {
  const all = [withoutCommand(leading), ...commands];
  return `# completion of strongroom for bash
_strongroom() {
  local rest="\${COMP_LINE:0:COMP_POINT}" word previous command="" kind=any flags="" i behind=0 at=1 last
  local -a words=()
  COMPREPLY=()
  # bash splits words at : and = too: what no space separates on the line belongs together
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if [[ $i == 0 || $rest == [[:space:]]* ]]; then words+=(""); fi
    rest="\${rest#"\${rest%%[![:space:]]*}"}"
    if ((i < COMP_CWORD)); then word="\${COMP_WORDS[i]}"; else word="$rest"; fi
    words[\${#words[@]}-1]+="$word"
    rest="\${rest#"$word"}"
    if [[ $word == -- && $behind == 0 && $i -lt $COMP_CWORD ]]; then behind=$((i + 1)); fi
  done
  last=$((\${#words[@]} - 1)) word="\${words[\${#words[@]}-1]}" previous=""
  if ((last > 0)); then previous="\${words[last-1]}"; fi
  while ((at < last)); do
    case "\${words[at]}" in
${leadingBranches(leading)}
    esac
  done
  if [[ $command == run && $behind != 0 ]]; then _strongroom_program "$behind"; return; fi
  local IFS=$'\\n'
  if ((at == last)) && [[ $word != -* ]]; then
    COMPREPLY=($(compgen -W ${lines(commands.flatMap(({ names }) => names))} -- "$word"))
    return
  fi
  case "$command" in
${branches(all, ({ flags }) => `flags=${lines(flags.map(({ name }) => name))}`)}
  esac
  if [[ $word == --*=* ]]; then previous="\${word%%=*}" word="\${word#*=}"; fi
  case "$command:$previous" in
${valueBranches(all)}
    *) if [[ $word == -* ]]; then kind="$flags"; fi ;;
  esac
  case "$kind" in
    any) ;;
    files) COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null ;;
    program) COMPREPLY=($(compgen -c -- "$word")) ;;
    paths | named) _strongroom_paths "$kind" "$word" ;;
    *) COMPREPLY=($(compgen -W "$kind" -- "$word")) ;;
  esac
}
_strongroom_program() {
  if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then _command_offset "$1"
  elif ((COMP_CWORD == $1)); then COMPREPLY=($(compgen -c -- "\${COMP_WORDS[COMP_CWORD]}"))
  else
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
    compopt -o filenames 2>/dev/null
  fi
}
_strongroom_paths() {
  local word="$2" quote="" name="" breaks="\${COMP_WORDBREAKS//[^:=]/}" kept="" path
  if [[ $word == [\\'\\"]* ]]; then quote="\${word:0:1}" word="\${word:1}"; fi
  if [[ $1 == named ]]; then
    if [[ $word != *=* ]]; then return; fi
    if [[ -n $quote || $breaks != *=* ]]; then name="\${word%%=*}="; fi
    word="\${word#*=}"
  fi
  if [[ -z $quote && $word == [\\'\\"]* ]]; then quote="\${word:0:1}" word="\${word:1}"; fi
  # bash replaces only what follows the last : or =
  if [[ -z $quote && -n $breaks ]]; then kept="\${word%"\${word##*["$breaks"]}"}"; fi
  local -a found=("\${word//\\\\/}")
  while true; do
    path="\${found[0]}" found=()
    while read -r path; do found+=("$path"); done < <(strongroom complete-paths -- "$path" 2>/dev/null)
    # bash closes the quotes behind the only candidate: within a folder there must be more, or its last one
    if [[ -z $quote || \${#found[@]} != 1 || \${found[0]} != */ ]]; then break; fi
  done
  for path in "\${found[@]}"; do
    case "$quote" in
      \\') path="\${path//\\'/\\'\\\\\\'\\'}" ;;
      \\") path="\${path//[\\"\\$\\\`]/\\\\&}" ;;
      *) printf -v path %q "$path"; path="\${path#"$kept"}" ;;
    esac
    COMPREPLY+=("$name$path")
  done
  if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _strongroom strongroom
`;
};

const zsh: Script = (commands, leading) => {
  const all = [withoutCommand(leading), ...commands];
  const described = commands.map(({ names: [name = ""], summary }) => `'${name}:${summary.replace(/'/g, "'\\''")}'`);
  return `#compdef strongroom
_strongroom() {
  local kind=any flags="" command=""
  local -i at=2
  local -a found
  while ((at < CURRENT)); do
    case "\${words[at]}" in
${leadingBranches(leading)}
    esac
  done
  if ((at == CURRENT)) && [[ "$PREFIX" != -* ]]; then
    found=(${described.join(" ")})
    _describe command found
    return
  fi
  local behind="\${words[(i)--]}"
  if [[ "$command" == run ]] && ((behind < CURRENT)); then
    shift $behind words
    ((CURRENT -= behind))
    _normal
    return
  fi
  case "$command" in
${branches(all, ({ flags }) => `flags=${lines(flags.map(({ name }) => name))}`)}
  esac
  case "$command:\${words[CURRENT-1]}" in
${valueBranches(all)}
    *) if [[ $PREFIX == -* ]]; then kind="$flags"; fi ;;
  esac
  case "$kind" in
    any) ;;
    files) _files ;;
    program) _command_names -e ;;
    paths | named)
      local typed="\${(Q)PREFIX}" name=""
      if [[ $kind == named && $typed != *=* ]]; then return; fi
      if [[ $kind == named ]]; then name="\${typed%%\\=*}="; typed="\${typed#*\\=}"; fi
      found=("\${(@f)$(strongroom complete-paths -- "$typed" 2>/dev/null)}")
      found=("\${(@)\${(@)found:#}/#/$name}")
      compadd -- \${found:#*/}
      compadd -S '' -- \${(M)found:#*/}
      ;;
    *) compadd -- \${(f)kind} ;;
  esac
}
if [[ "\${funcstack[1]}" == _strongroom ]]; then _strongroom "$@"; else compdef _strongroom strongroom; fi
`;
};

const fish: Script = (commands, leading) => {
  const rows = commands.flatMap(({ names, summary, flags, argument }) => {
    const behind = `complete -c strongroom -n '__strongroom_in ${names.join(" ")}'`;
    return [
      `complete -c strongroom -n __strongroom_starts -a '${names.join(" ")}' -d ${fishText(summary)}`,
      `${argument === "program" ? behind.replace(/'$/, "; and __strongroom_runs'") : behind}${fishCandidates(argument)}`,
      ...flags.map((flag) => `${behind}${fishFlag(flag)}`),
    ];
  });
  const before = leading.map((flag) => `complete -c strongroom -n __strongroom_starts${fishFlag(flag)}`);
  const all = ["complete -c strongroom -f", ...before, ...rows].join("\n");
  return `# completion of strongroom for fish\n${fishFunctions(leading)}${all}\n`;
};

export const scripts = { bash, zsh, fish };

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
    strongroom complete-paths -- (__strongroom_typed) 2>/dev/null
end
function __strongroom_named
    set -l parts (string split -m 1 = -- (__strongroom_typed))
    test (count $parts) = 2; and string replace -r '^' "$parts[1]=" -- (strongroom complete-paths -- $parts[2] 2>/dev/null)
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
  if (value === "paths" || value === "named") return ` -a '(__strongroom_${value})'`;
  if (value === "program") return " -a '(__strongroom_program)'";
  return ` -a '${value.join(" ")}'`;
}

function fishText(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

/** What may be typed before a command's name, as a command without a name. */
function withoutCommand(leading: readonly FlagSpec[]): CommandSpec {
  return { names: [""], summary: "", flags: leading, argument: "any" };
}

function withValues(flags: readonly FlagSpec[]): string[] {
  return flags.filter(({ value }) => value !== null).map(({ name }) => name);
}

/** What bash and zsh do with the word at `at` while they look for the command's name. */
function leadingBranches(leading: readonly FlagSpec[]): string {
  return `      ${withValues(leading).join("|")}) ((at += 2)) ;;
      -*) ((at += 1)) ;;
      *) command="\${words[at]}"; break ;;`;
}

/** A branch for each command: its flags, and the kind of its argument. */
function branches(commands: readonly CommandSpec[], more: (command: CommandSpec) => string): string {
  return commands
    .map((command) => `    ${command.names.join("|") || "''"}) kind=${kindOf(command.argument)}; ${more(command)} ;;`)
    .join("\n");
}

/** A branch for each kind of value: the flags, each with its command, that take it. */
function valueBranches(commands: readonly CommandSpec[]): string {
  const byKind = new Map<string, string[]>();
  for (const { names, flags } of commands) {
    for (const { name: long, short, value } of flags) {
      if (value === null) continue;
      const kind = kindOf(value);
      const spelled = [long, ...(short === null ? [] : [short])];
      const rows = names.flatMap((name) => spelled.map((flag) => `${name}:${flag}`));
      byKind.set(kind, [...(byKind.get(kind) ?? []), ...rows]);
    }
  }
  return [...byKind].map(([kind, flags]) => `    ${flags.join("|")}) kind=${kind} ;;`).join("\n");
}

function kindOf(value: Completable): string {
  return typeof value === "string" ? value : lines(value);
}

/** Words as one bash and zsh string of several lines. */
function lines(words: readonly string[]): string {
  return `$'${words.join("\\n")}'`;
}
