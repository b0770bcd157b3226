/**
 * Owns the size of the server's thread pool, which works on files and derives keys. To be loaded before anything that
 * starts the pool, since its size is then fixed; loading an ES module may be enough.
 *
 * A write has an fsync under way for most of its time, and a key derivation keeps a thread for half a second: with the
 * usual 4 threads, reads would stand in line behind them. With many more, writes only get into each other's way: 16
 * threads cost a put a tenth more CPU than 6.
 */
if (process.argv[2] === "serve") process.env["UV_THREADPOOL_SIZE"] ??= "6";
