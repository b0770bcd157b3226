/**
 * Owns the size of the server's thread pool, which works on files and derives keys. To be loaded before anything that
 * starts the pool, since its size is then fixed; loading an ES module may be enough.
 *
 * A write has an fsync under way for most of its time: with the usual 4 threads, all other file operations stand in line
 * behind 4 of them.
 */
if (process.argv[2] === "serve") process.env["UV_THREADPOOL_SIZE"] ??= "16";
