/**
 * Completion scripts for bash, zsh and fish. Commands and flags are in the script; only the paths of secrets need a
 * process, `strongroom complete-paths`.
 */

/** Paths of secrets, names of files, nothing, or one of these words. */
export type Completable = "paths" | "files" | "any" | readonly string[];

export type FlagSpec = {
  readonly name: string;
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
  local line="\${COMP_LINE:0:COMP_POINT}" current="\${COMP_WORDS[COMP_CWORD]}" kind=any flags="" path
  local word="\${line##*[[:space:]]}" IFS=$'\\n'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${lines(commands.flatMap(({ names }) => names))} -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${branches(commands, ({ flags }) => `flags=${lines(flags.map(({ name }) => name))}`)}
  esac
  case "\${COMP_WORDS[1]}:\${COMP_WORDS[COMP_CWORD-1]}" in
${valueBranches(commands)}
    *) if [[ $word == -* ]]; then kind="$flags"; fi ;;
  esac
  case "$kind" in
    any) ;;
    files) COMPREPLY=($(compgen -f -- "$current")) ;;
    paths)
      # bash splits words at : and = too: candidates must not repeat the part before the split
      while read -r path; do
        COMPREPLY+=("$(printf %q "\${path#"\${word%"$current"}"}")")
      done < <(strongroom complete-paths -- "$word" 2>/dev/null)
      if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
      ;;
    *) COMPREPLY=($(compgen -W "$kind" -- "$current")) ;;
  esac
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
    paths)
      found=("\${(@f)$(strongroom complete-paths -- "\${(Q)PREFIX}" 2>/dev/null)}")
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
      `${behind}${fishCandidates(argument)}`,
      ...flags.map(({ name, summary, value }) => {
        const takes = value === null ? "" : ` -r${fishCandidates(value)}`;
        return `${behind} -l ${name.slice(2)}${takes} -d ${fishText(summary)}`;
      }),
    ];
  });
  return `# completion of strongroom for fish\ncomplete -c strongroom -f\n${rows.join("\n")}\n`;
}

function fishCandidates(value: Completable): string {
  if (value === "any") return "";
  if (value === "files") return " -F";
  if (value === "paths") return " -a '(strongroom complete-paths -- (commandline -ct) 2>/dev/null)'";
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
    for (const { name: flag, value } of flags) {
      if (value === null) continue;
      const kind = kindOf(value);
      byKind.set(kind, [...(byKind.get(kind) ?? []), ...names.map((name) => `${name}:${flag}`)]);
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
