/** Errors of the secret store on files, for clients. */
import { systemCode, VaultError } from "../../errors.js";
import { NotPlainFile } from "../../files/durable.js";

const askDoctor = "run strongroom doctor to see what it is, and move it away";

export function unavailable(message: string, cause: unknown): VaultError {
  return new VaultError("UNAVAILABLE", message, { cause });
}

export function readFailure(path: string, error: unknown): VaultError {
  if (!(error instanceof NotPlainFile)) return cannotRead(error);
  return new VaultError("INTEGRITY", `the stored secret at ${path} is not a plain file: ${askDoctor}`, {
    cause: error,
  });
}

export function cannotRead(cause: unknown): VaultError {
  return unavailable("the storage cannot be read now: try again, and check the server's log", cause);
}

export function writeFailure(path: string, error: unknown): VaultError {
  if (systemCode(error) === "EISDIR") return directoryAt(path, error);
  if (systemCode(error) !== "ENAMETOOLONG") return cannotWrite(error);
  return unavailable("the file path is too long: use a shorter secret path or home directory", error);
}

export function cannotWrite(cause: unknown): VaultError {
  return unavailable("the write failed: free disk space or check the disk, then try again", cause);
}

export function removalFailure(path: string, error: unknown): VaultError {
  if (systemCode(error) === "EISDIR") return directoryAt(path, error);
  return unavailable("the storage cannot delete now: repair the disk, then try again", error);
}

export function snapshotFailure(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  if (error instanceof NotPlainFile) return unavailable(`${error.message}: ${askDoctor}`, error);
  return unavailable("the snapshot failed: free disk space or check the disk, then try again", error);
}

export function lostSecrets(vaultPath: string): VaultError {
  const remedy = "restore it from a backup, or start the server, which creates an empty one";
  return new VaultError(
    "INTEGRITY",
    `the directory of secrets is missing in ${vaultPath}: nothing was saved; ${remedy}`,
  );
}

function directoryAt(path: string, cause: unknown): VaultError {
  return new VaultError("INTEGRITY", `the stored secret at ${path} is a directory: ${askDoctor}`, { cause });
}
