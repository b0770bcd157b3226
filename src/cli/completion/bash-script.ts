/** Completion script for bash. */
import {
  actionBranches,
  branches,
  leadingBranches,
  lines,
  pathFlags,
  type Script,
  valueBranches,
  withoutCommand,
} from "./command-spec.js";

export const bashScript: Script = (commands, leading) => {
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
  # an action is typed once
  for ((i = at + 1; i < last; i++)); do
    if [[ $kind == *$'\\n'* && $'\\n'$kind$'\\n' == *$'\\n'"\${words[i]}"$'\\n'* ]]; then kind=any; fi
  done
  case "$command:\${words[at+1]}" in
${actionBranches(commands, "((last == at + 2))")}
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
    tokens) COMPREPLY=($(compgen -W "$(strongroom complete-paths --tokens 2>/dev/null)" -- "$word")) ;;
    paths | named | restorable | trashed) _strongroom_paths "$kind" "$word" ;;
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
  local -a trash=()
  case "$1" in
${pathFlags}
  esac
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
    while read -r path; do found+=("$path"); done < <(strongroom complete-paths \${trash[@]+"\${trash[@]}"} -- "$path" 2>/dev/null)
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
