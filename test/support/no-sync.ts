/**
 * Disables fsync inside a server process, which shows that the power-cut rig detects lost data. Loaded before the program
 * with `--import`; the URL's query says which syncs do nothing: `?files`, `?directories`, or `?files&directories`.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const off = new URL(import.meta.url).searchParams;
const { fsync } = fs;

fs.fsync = Object.assign((descriptor: number, done: fs.NoParamCallback): void => {
  fs.fstat(descriptor, (error, stats) => {
    if (error !== null) done(error);
    else if (off.has(stats.isDirectory() ? "directories" : "files")) done(null);
    else fsync(descriptor, done);
  });
}, fsync);
syncBuiltinESMExports();
