/** Files that decide what programs get: read only when no other user can have written them. */
import { open } from "node:fs/promises";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { quoted } from "../../files/home.js";
import { CommandFailure } from "../session/exit-codes.js";
import { printable } from "../session/output.js";

export type OwnFile = { readonly file: string; readonly bytes: Buffer };

/** Checks and reads the same open file. @throws CommandFailure usage, when it is another user's, or others can write it */
export async function readOwnFile(file: string): Promise<OwnFile> {
  const name = printable(file);
  const handle = await open(file).catch((error) => {
    throw new CommandFailure("usage", `${name} cannot be read${reasonOf(systemCode(error))}`);
  });
  try {
    const { uid, mode } = await handle.stat();
    if (process.getuid !== undefined && uid !== process.getuid()) {
      throw new CommandFailure("usage", `${name} belongs to another user: it is not used`);
    }
    if ((mode & 0o022) !== 0) {
      throw new CommandFailure("usage", `${name} can be written by others: run  chmod go-w ${printable(quoted(file))}`);
    }
    return { file, bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
}
