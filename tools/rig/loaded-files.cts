/** Loaded into a process with --require: writes the names of the files that it loaded when it ends, for `loadedBy`. */
const { writeFileSync } = process.getBuiltinModule("node:fs");

const file = process.env["STRONGROOM_LOADED_FILES"];
if (file !== undefined) process.on("exit", () => writeFileSync(file, JSON.stringify(Object.keys(require.cache))));
