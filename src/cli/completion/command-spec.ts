/**
 * Commands and flags as the completion scripts need them, and what the scripts of bash and zsh share. Only the paths of
 * secrets need a process, `strongroom complete-paths`.
 */

/**
 * Paths of secrets, with those in the trash (`restorable`) or only these (`trashed`); `NAME=path`; names of client tokens; names
 * of files; a program with its own arguments; nothing; or one of these words.
 */
export type Completable =
  | "paths"
  | "restorable"
  | "trashed"
  | "named"
  | "tokens"
  | "files"
  | "program"
  | "any"
  | readonly string[];

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
  /** Arguments after an action of the command; `once`: a single argument. */
  readonly behindActions: readonly BehindAction[];
};

export type BehindAction = {
  readonly actions: readonly string[];
  readonly kind: "tokens" | "trashed";
  readonly once: boolean;
};

/** `leading`: the flags that may come before the command's name. */
export type Script = (commands: readonly CommandSpec[], leading: readonly FlagSpec[]) => string;

/** Returns the flags that may precede a command's name, as a command without a name. */
export function withoutCommand(leading: readonly FlagSpec[]): CommandSpec {
  return { names: [""], summary: "", flags: leading, argument: "any", behindActions: [] };
}

export function withValues(flags: readonly FlagSpec[]): string[] {
  return flags.filter(({ value }) => value !== null).map(({ name }) => name);
}

/** Returns the branches of bash and zsh for the word at `at`, in the search for the command's name. */
export function leadingBranches(leading: readonly FlagSpec[]): string {
  return `      ${withValues(leading).join("|")}) ((at += 2)) ;;
      -*) ((at += 1)) ;;
      *) command="\${words[at]}"; break ;;`;
}

/** A branch for each command: its flags, and the kind of its argument. */
export function branches(commands: readonly CommandSpec[], more: (command: CommandSpec) => string): string {
  return commands
    .map(
      (command) =>
        `    ${command.names.join("|") || "''"}) kind=${completionKind(command.argument)}; ${more(command)} ;;`,
    )
    .join("\n");
}

/** A branch for each kind of value: the flags, each with its command, that take it. */
export function valueBranches(commands: readonly CommandSpec[]): string {
  const byKind = new Map<string, string[]>();
  for (const { names, flags } of commands) {
    for (const { name: long, short, value } of flags) {
      if (value === null) continue;
      const kind = completionKind(value);
      const spelled = [long, ...(short === null ? [] : [short])];
      const rows = names.flatMap((name) => spelled.map((flag) => `${name}:${flag}`));
      byKind.set(kind, [...(byKind.get(kind) ?? []), ...rows]);
    }
  }
  return [...byKind].map(([kind, flags]) => `    ${flags.join("|")}) kind=${kind} ;;`).join("\n");
}

/** A branch for each kind of argument behind an action. `isNext`: the test whether the word follows the action at once. */
export function actionBranches(commands: readonly CommandSpec[], isNext: string): string {
  return commands
    .flatMap(({ names, behindActions }) =>
      behindActions.map(({ actions, kind, once }) => {
        const patterns = names.flatMap((name) => actions.map((action) => `${name}:${action}`)).join("|");
        return `    ${patterns}) ${once ? `if ${isNext}; then kind=${kind}; fi` : `kind=${kind}`} ;;`;
      }),
    )
    .join("\n");
}

/** Flags of `complete-paths` for a kind of paths, as a branch for each. */
export const pathFlags = `    trashed) trash=(--trash only) ;;
    restorable) trash=(--trash too) ;;`;

function completionKind(value: Completable): string {
  return typeof value === "string" ? value : lines(value);
}

/** Words as one bash and zsh string of several lines. */
export function lines(words: readonly string[]): string {
  return `$'${words.join("\\n")}'`;
}
