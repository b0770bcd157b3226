/** `npm run share`: writes the manual page and the completion scripts for the package. */
import { cleanUpTo } from "../rig/clean-up.js";
import { writeShare } from "./share-files.js";

try {
  await writeShare("dist/share");
} finally {
  await cleanUpTo(0);
}
