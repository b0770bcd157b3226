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

export const scripts = { bash, zsh, fish };

function bash(commands: readonly CommandSpec[]): string {
  return `# completion of strongroom for bash
_strongroom() {
  local rest="\${COMP_LINE:0:COMP_POINT}" word previous kind=any flags="" i behind=0
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
  word="\${words[\${#words[@]}-1]}" previous=""
  if ((\${#words[@]} > 1)); then previous="\${words[\${#words[@]}-2]}"; fi
  if [[ \${words[1]} == run && $behind != 0 ]]; then _strongroom_program "$behind"; return; fi
  local IFS=$'\\n'
  if ((\${#words[@]} == 2)); then
    COMPREPLY=($(compgen -W ${lines(commands.flatMap(({ names }) => names))} -- "$word"))
    return
  fi
  case "\${words[1]}" in
${branches(commands, ({ flags }) => `flags=${lines(flags.map(({ name }) => name))}`)}
  esac
  if [[ $word == --*=* ]]; then previous="\${word%%=*}" word="\${word#*=}"; fi
  case "\${words[1]}:$previous" in
${valueBranches(commands)}
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
}

function zsh(commands: readonly CommandSpec[]): string {
  const described = commands.map(({ names: [name = ""], summary }) => `'${name}:${summary.replace(/'/g, "'\\''")}'`);
  return `#compdef strongroom
_strongroom() {
  local kind=any flags=""
  local -a found
  if ((CURRENT == 2)); then
    found=(${described.join(" ")})
    _describe command found
    return
  fi
  local behind="\${words[(i)--]}"
  if [[ "\${words[2]}" == run ]] && ((behind < CURRENT)); then
    shift $behind words
    ((CURRENT -= behind))
    _normal
    return
  fi
  case "\${words[2]}" in
${branches(commands, ({ flags }) => `flags=${lines(flags.map(({ name }) => name))}`)}
  esac
  case "\${words[2]}:\${words[CURRENT-1]}" in
${valueBranches(commands)}
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
}

function fish(commands: readonly CommandSpec[]): string {
  const rows = commands.flatMap(({ names, summary, flags, argument }) => {
    const behind = `complete -c strongroom -n '__fish_seen_subcommand_from ${names.join(" ")}'`;
    return [
      `complete -c strongroom -n __fish_use_subcommand -a '${names.join(" ")}' -d ${fishText(summary)}`,
      `${argument === "program" ? behind.replace(/'$/, "; and __strongroom_runs'") : behind}${fishCandidates(argument)}`,
      ...flags.map(({ name, short, summary, value }) => {
        const takes = value === null ? "" : `${value === "files" ? " -r" : " -x"}${fishCandidates(value)}`;
        const letter = short === null ? "" : ` -s ${short.slice(1)}`;
        return `${behind} -l ${name.slice(2)}${letter}${takes} -d ${fishText(summary)}`;
      }),
    ];
  });
  return `# completion of strongroom for fish\n${fishFunctions}complete -c strongroom -f\n${rows.join("\n")}\n`;
}

const fishFunctions = `function __strongroom_typed
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

/** A branch for each command: its flags, and the kind of its argument. */
function branches(commands: readonly CommandSpec[], more: (command: CommandSpec) => string): string {
  return commands
    .map((command) => `    ${command.names.join("|")}) kind=${kindOf(command.argument)}; ${more(command)} ;;`)
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
