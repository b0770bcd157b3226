/** Places that `scan` did not search: why, and whether the search is incomplete for it. */

/** Reasons why the search is incomplete, which changes the exit code. */
export const reasons = {
  large: "it is larger than 256 MiB",
  missing: "git does not have it here: fetch it first",
  shallow: "the clone is shallow, earlier commits are not here: git fetch --unshallow",
  submodule: "the submodule is not checked out here: git submodule update --init",
  noGit: "git is not installed, so the repository's history cannot be read",
  lfs: "its content is in Git LFS and not here: git lfs fetch --all",
  annex: "its content is in git-annex",
  compressed: "it is compressed in a form that scan does not read",
  encrypted: "it is an encrypted archive",
  name: "its name is not UTF-8",
  damaged: "the secret is damaged, so its value was not searched for: see  strongroom doctor",
} as const;

/** Reasons why a file is no part of the search: they leave the exit code as it is. */
const harmless = {
  ignored: "git ignores it: --ignored searches it",
  worktree: "another work tree of the repository: scan it by itself",
  link: "a symbolic link that leads out of the directory",
} as const;

/** `isHarmless`: the search of what was asked for is complete without it. */
type Unsearched = { readonly file: string; readonly why: string; readonly isHarmless: boolean };

export class UnsearchedList {
  readonly all: Unsearched[] = [];

  /** Adds a place that had to be searched and was not. */
  skip(file: string, why: string): void {
    this.all.push({ file, why, isHarmless: false });
  }

  leaveOut(file: string, why: keyof typeof harmless): void {
    this.all.push({ file, why: harmless[why], isHarmless: true });
  }

  get missed(): number {
    return this.all.filter(({ isHarmless }) => !isHarmless).length;
  }

  get ignored(): number {
    return this.all.filter(({ why }) => why === harmless.ignored).length;
  }

  /** Returns a line for each place that git does not ignore; for many with one reason, a few and their number. */
  lines(): string[] {
    const byReason = new Map<string, string[]>();
    for (const { file, why } of this.all) {
      if (why === harmless.ignored) continue;
      const files = byReason.get(why);
      if (files === undefined) byReason.set(why, [file]);
      else files.push(file);
    }
    return [...byReason].flatMap(([why, files]) => {
      const rest = files.length - mostNamed;
      const named = files.slice(0, rest > 1 ? mostNamed : files.length).map((file) => `${file}: ${why}`);
      return rest > 1 ? [...named, `${rest} more: ${why}`] : named;
    });
  }
}

/** Limit of places named for one reason. */
const mostNamed = 5;
