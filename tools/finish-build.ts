/** Last step of the build: the files in dist that the compiler and the bundler do not make. */
import { cpSync, writeFileSync } from "node:fs";
import { renderNotice } from "../packaging/notice.js";
import { writeList } from "../prove/program.js";
import { openApiJson } from "./contract/contract-files.js";

writeFileSync("dist/openapi.json", openApiJson());
writeFileSync("dist/NOTICE", renderNotice());
cpSync("src/http/review", "dist/program/review", { recursive: true });
writeList(process.cwd());
