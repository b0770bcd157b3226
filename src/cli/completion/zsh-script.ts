/** Completion script for zsh. */
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

export const zshScript: Script = (commands, leading) => {
  const all = [withoutCommand(leading), ...commands];
  const described = commands.map(({ names: [name = ""], summary }) => `'${name}:${summary.replace(/'/g, "'\\''")}'`);
  return `#compdef strongroom
_strongroom() {
  local kind=any flags="" command="" word
  local -i at=2
  local -a found trash
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
  # an action is typed once
  if [[ "$kind" == *$'\\n'* ]]; then
    found=("\${(@f)kind}")
    for word in "\${(@)words[at+1,CURRENT-1]}"; do if ((\${found[(Ie)$word]})); then kind=any; fi; done
  fi
  case "$command:\${words[at+1]}" in
${actionBranches(commands, "((CURRENT == at + 2))")}
  esac
  case "$command:\${words[CURRENT-1]}" in
${valueBranches(all)}
    *) if [[ $PREFIX == -* ]]; then kind="$flags"; fi ;;
  esac
  case "$kind" in
    any) ;;
    files) _files ;;
    program) _command_names -e ;;
    tokens) compadd -- \${(f)"$(strongroom complete-paths --tokens 2>/dev/null)"} ;;
    paths | named | restorable | trashed)
      case "$kind" in
${pathFlags}
      esac
      local typed="\${(Q)PREFIX}" name=""
      if [[ $kind == named && $typed != *=* ]]; then return; fi
      if [[ $kind == named ]]; then name="\${typed%%\\=*}="; typed="\${typed#*\\=}"; fi
      found=("\${(@f)$(strongroom complete-paths $trash -- "$typed" 2>/dev/null)}")
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
