/** Last step of the build: makes the files in dist that the compiler and the bundler do not make, and removes stale ones. */
import { spawnSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { renderNotice } from "../packaging/notice.js";
import { writeList } from "../prove/program.js";
import { openApiJson } from "./contract/contract-files.js";
import { removeStaleOutput } from "./stale-output.js";

removeStaleOutput(process.cwd());
writeFileSync("dist/openapi.json", openApiJson());
writeFileSync("dist/NOTICE", renderNotice());
cpSync("src/http/review", "dist/program/review", { recursive: true });
writeFileSync("dist/program/commit", commitOfSource());
writeList(process.cwd());

/** Returns the commit, marked where files differ from it; empty without git. */
function commitOfSource(): string {
  const { stdout } = spawnSync("git", ["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"], {
    encoding: "utf8",
  });
  return stdout ?? "";
}
