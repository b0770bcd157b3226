/** `npm run docs`: writes the tables and sessions of all documents as the code has them now, and README's picture. */
import { readFileSync, writeFileSync } from "node:fs";
import { cleanUpTo } from "../rig/clean-up.js";
import { documentFiles } from "./document-files.js";
import { renderTables, withTables } from "./generated-tables.js";
import { pictureFile, renderPicture } from "./session-picture.js";
import { hasCommands, withSessions } from "./sessions.js";

try {
  const tables = await renderTables();
  for (const file of documentFiles) {
    const text = withTables(readFileSync(file, "utf8"), tables);
    writeFileSync(file, hasCommands(text) ? await withSessions(file, text) : text);
  }
  writeFileSync(pictureFile, renderPicture(readFileSync("README.md", "utf8")));
} finally {
  await cleanUpTo(0);
}
