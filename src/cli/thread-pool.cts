/**
 * Size of the server's thread pool, which does file I/O and key derivation. Must be loaded before anything that starts the
 * pool, since its size is then fixed; loading an ES module may be enough.
 *
 * A write spends most of its time in fsync, and a key derivation occupies a thread for half a second: with the default of
 * 4 threads, reads would queue behind them. With many more, writes contend: 16 threads cost a put a tenth more CPU than 6.
 */
if (process.argv[2] === "serve") process.env["UV_THREADPOOL_SIZE"] ??= "6";
