/**
 * Owns switching syncs off inside a server process, so that the power-cut rig can be seen losing data. Loaded before the
 * program with `--import`; the address says which syncs do nothing: `?files`, `?directories`, or `?files&directories`.
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
