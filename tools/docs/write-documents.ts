/** `npm run docs`: writes the tables and the sessions of all documents as the code has them now. */
import { readFileSync, writeFileSync } from "node:fs";
import { cleanUpTo } from "../rig/clean-up.js";
import { documentFiles } from "./document-files.js";
import { renderTables, withTables } from "./generated-tables.js";
import { hasCommands, withSessions } from "./sessions.js";

try {
  const tables = await renderTables();
  for (const file of documentFiles) {
    const text = withTables(readFileSync(file, "utf8"), tables);
    writeFileSync(file, hasCommands(text) ? await withSessions(file, text) : text);
  }
} finally {
  await cleanUpTo(0);
}
