/** The last step of the build: writes the list of the program's files. */
import { writeList } from "./program.js";

writeList(process.cwd());
