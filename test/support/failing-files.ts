/** Owns file operations that fail on demand, so that a full or broken disk can be had at will. */
import type { FileHandle } from "node:fs/promises";
import { type FileOperations, systemFiles } from "../../src/storage/durable.js";

type Step = "lstat" | "mkdir" | "open" | "readdir" | "rename" | "rmdir" | "unlink" | "writeFile" | "sync" | "read";

export type FailingFiles = {
  readonly files: FileOperations;
  /** From now on each such step fails with this system code, until `mend`. */
  fail(step: Step, code: string): void;
  /** The k-th file operation from now on, and all after it, fail until `mend`. */
  failFrom(k: number, code: string): void;
  /** Only the k-th file operation from now on, whatever it is, fails. */
  failOnce(k: number, code: string): void;
  mend(): void;
};

export function failingFiles(): FailingFiles {
  const failing = new Map<Step, string>();
  let countdown = 0;
  let codeOnce = "";
  let forGood = false;
  const check = (step: Step) => {
    const code = failing.get(step) ?? dueNow();
    if (code !== undefined) throw Object.assign(new Error(`${code}: made to fail`), { code });
  };
  const dueNow = () => {
    if (countdown > 1) {
      countdown--;
      return undefined;
    }
    if (countdown === 0) return undefined;
    if (!forGood) countdown = 0;
    return codeOnce;
  };
  const files: FileOperations = {
    lstat: guarded("lstat", systemFiles.lstat),
    mkdir: guarded("mkdir", systemFiles.mkdir),
    readdir: guarded("readdir", systemFiles.readdir),
    rename: guarded("rename", systemFiles.rename),
    rmdir: guarded("rmdir", systemFiles.rmdir),
    unlink: guarded("unlink", systemFiles.unlink),
    open: guarded("open", async (...args: Parameters<FileOperations["open"]>) =>
      failingHandle(await systemFiles.open(...args), check),
    ),
  };
  function guarded<F extends (...args: never[]) => Promise<unknown>>(step: Step, operation: F): F {
    return (async (...args: Parameters<F>) => {
      check(step);
      return operation(...args);
    }) as F;
  }
  return {
    files,
    fail: (step, code) => void failing.set(step, code),
    failOnce(k, code) {
      [countdown, codeOnce, forGood] = [k, code, false];
    },
    failFrom(k, code) {
      [countdown, codeOnce, forGood] = [k, code, true];
    },
    mend() {
      failing.clear();
      countdown = 0;
    },
  };
}

function failingHandle(handle: FileHandle, check: (step: Step) => void): FileHandle {
  const steps = new Set<PropertyKey>(["writeFile", "sync", "read"]);
  return new Proxy(handle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        if (steps.has(name)) check(name as Step);
        return Reflect.apply(member, target, args);
      };
    },
  });
}
