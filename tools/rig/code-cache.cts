/**
 * Loaded into a process of the built program with --require: keeps what V8 compiled of each file for the processes after it,
 * since the tests start some 3,000. (Node 20 has no such cache of its own.) A kept file carries the time of the program's
 * file; V8 refuses what another version or other flags have made, and what is of another length.
 */
const { mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } =
  process.getBuiltinModule("node:fs");
const Module = process.getBuiltinModule("node:module");
const { basename, dirname, join } = process.getBuiltinModule("node:path");
const { Script, constants } = process.getBuiltinModule("node:vm");

type Compile = (this: NodeModule, source: string, file: string) => unknown;
type Fresh = { readonly script: InstanceType<typeof Script>; readonly kept: string; readonly changed: Date };

const program = join(__dirname, "../../program");
const directory = join(__dirname, `../../code-cache/${process.version}`);
const loader = Module.prototype as NodeModule & { _compile: Compile };
const compile = loader._compile;
const fresh: Fresh[] = [];

loader._compile = function (source, file) {
  if (dirname(file) !== program) return compile.call(this, source, file);
  const kept = join(directory, basename(file));
  const changed = statSync(file).mtime;
  const cachedData = keptCode(kept, changed);
  const script = new Script(Module.wrap(source), {
    filename: file,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData === null ? {} : { cachedData }),
  });
  if (cachedData === null) fresh.push({ script, kept, changed });
  const run = script.runInThisContext() as (this: unknown, ...of: readonly unknown[]) => unknown;
  return run.call(this.exports, this.exports, Module.createRequire(file), this, file, program);
};

function keptCode(kept: string, changed: Date): Buffer | null {
  try {
    return isSameTime(statSync(kept).mtime, changed) ? readFileSync(kept) : null;
  } catch {
    return null; // not kept yet
  }
}

/** Some file systems keep no fractions that others do. */
function isSameTime(one: Date, other: Date): boolean {
  return Math.abs(one.getTime() - other.getTime()) <= 1;
}

// Written at the end, when the needed functions have also been compiled.
process.on("exit", () => {
  try {
    if (fresh.length > 0) mkdirSync(directory, { recursive: true });
    for (const { script, kept, changed } of fresh) {
      const unfinished = `${kept}.${process.pid}`;
      writeFileSync(unfinished, script.createCachedData());
      utimesSync(unfinished, changed, changed);
      renameSync(unfinished, kept);
    }
  } catch {
    // of another user, or without room: the next process compiles again
  }
});
