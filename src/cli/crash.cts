/**
 * End of a command that failed unexpectedly: one line where files of the program are missing or changed, otherwise the kind of
 * the error and its stack frames. Loaded before all other files of the program, and needs none of them.
 */

/** The exit code `unexpected`. */
const exitCode = 1;

process.on("uncaughtException", (error: unknown) => {
  process.stderr.write(damageText(error) ?? crashText(error));
  process.exit(exitCode);
});

/** Returns null when the program is as it was built, as far as that can be known. */
function damageText(error: unknown): string | null {
  const files = damagedFiles();
  if (files === null ? !isOfLoading(error) : files.length === 0) return null;
  const which = files === null ? "" : `: ${files.slice(0, 3).join(", ")}${files.length > 3 ? ", …" : ""}`;
  return `strongroom: files of the program are missing or changed${which}; install strongroom again\n`;
}

/** Compares the program with the list of the build; null without a list. */
function damagedFiles(): string[] | null {
  const { createHash } = process.getBuiltinModule("node:crypto");
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const { join } = process.getBuiltinModule("node:path");
  const root = join(__dirname, "../..");
  try {
    const lines = readFileSync(join(root, "dist/SHA256SUMS"), "utf8").trimEnd().split("\n");
    return lines
      .map((line) => [line.slice(0, 64), line.slice(66)] as const)
      .flatMap(([sum, name]) => {
        try {
          const found = createHash("sha256")
            .update(readFileSync(join(root, name)))
            .digest("hex");
          return found === sum ? [] : [name];
        } catch {
          return [name];
        }
      });
  } catch {
    return null;
  }
}

/** Whether Node could not load a file: there is none, or it is no JavaScript. */
function isOfLoading(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isMissing = "code" in error && error.code === "MODULE_NOT_FOUND";
  return isMissing || (error.name === "SyntaxError" && /^\/.*\.cjs:\d+\n/.test(error.stack ?? ""));
}

/** DANGER: the text of an unexpected error may quote anything: only its kind and stack frames are printed. */
function crashText(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const name = error instanceof Error ? error.name : typeof error;
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  const lines = [`strongroom: failed unexpectedly: ${typeof code === "string" ? code : name}`, ...(frames ?? [])];
  return `${lines.join("\n")}\n`;
}
