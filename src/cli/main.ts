/** The `strongroom` command as a process: its protections, its streams, and how it ends; see also `crash.cts`. */
import { isatty } from "node:tty";
import { systemCode } from "../errors.js";
import { failureReason } from "../files/file-problem.js";
import { hardenProcess } from "../hardening.js";
import { runCommandLine } from "./command-line.js";
import { commandFirst } from "./kit/args/args.js";
import { exitCodes } from "./kit/errors.js";
import { processIo } from "./kit/io.js";
import { argumentNotUtf8 } from "./kit/programs/inherited.js";
import { discardAtEnd } from "./kit/prompts/prompt.js";
import { memoryPlaces, removeStaleScratch } from "./kit/prompts/scratch.js";

/** Whether this file was not empty: a command would succeed without a word. */
export const isWhole = true;

hardenProcess();
removeStaleScratch(memoryPlaces(processIo));
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (systemCode(error) === "EPIPE") process.exit(); // the reader is gone, as in `| head`
    process.stderr.write(`strongroom: cannot write the output${failureReason(systemCode(error))}\n`);
    process.exit(exitCodes.unexpected);
  });
}

/** A command that waits for something that never comes must not look like a success. */
const reportStall = () => {
  process.stderr.write("strongroom: the command ended before its work was done, for an unknown reason: try again\n");
  process.exitCode = exitCodes.unexpected;
};
process.once("beforeExit", reportStall);

const args = process.argv.slice(2);
/** Commands that ask for a secret: what is typed while one runs is most likely that, and is discarded if it ends before it asks. */
const asking = new Set(["init", "unlock", "passphrase", "key", "rotate-key", "put", "set", "doctor", "audit", "prove"]);
if (isatty(0) && asking.has(commandFirst(args)[0] ?? "")) discardAtEnd(processIo);
const unreadable = argumentNotUtf8(args);
if (unreadable === null) void runCommandLine(args, processIo).finally(() => process.off("beforeExit", reportStall));
else {
  process.off("beforeExit", reportStall);
  process.stderr.write(
    `strongroom: argument ${unreadable} is not UTF-8, and cannot be read or passed on: a script that holds it can be run instead\n`,
  );
  process.exitCode = exitCodes.usage;
}
