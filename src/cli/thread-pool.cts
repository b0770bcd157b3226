/**
 * Size of the server's thread pool, which does file I/O and key derivation. Must be loaded before anything that starts the
 * pool, since its size is then fixed; loading an ES module may be enough.
 *
 * A write spends most of its time in fsync, and a key derivation occupies a thread for half a second: with the default of
 * 4 threads, reads would queue behind them. With many more, writes contend: 16 threads cost a put a tenth more CPU than 6.
 */
if (isServe(process.argv.slice(2))) process.env["UV_THREADPOOL_SIZE"] ??= "6";

/** Flags and their values may come before the command's name. */
function isServe(args: readonly string[]): boolean {
  const at = args.indexOf("serve");
  const isFlag = (text: string | undefined) => text?.startsWith("--") === true;
  const mayPrecede = (text: string, index: number) =>
    isFlag(text) || (isFlag(args[index - 1]) && !args[index - 1]?.includes("="));
  return at >= 0 && args.slice(0, at).every(mayPrecede);
}
