/** Entry point of `npm run notice`. */
import { writeFileSync } from "node:fs";
import { renderNotice } from "./notice.js";

writeFileSync("NOTICE", renderNotice());
