/**
 * Entry point of the key worker's thread, which piscina loads with `require`. DANGER: it must not be an ES module. A thread
 * that is ended while `require` links one aborts the whole process (Node 20.20); while `import` links one, it just ends.
 */
module.exports = { serve: async (start: never): Promise<never> => (await import("./key-worker.js")).serve(start) };
