/** File operations that fail on demand: simulates a full or failing disk. */
import { type FileOperations, type OpenFile, systemFiles } from "../../src/files/durable.js";
import { lightFiles } from "../../tools/rig/light-files.js";

type HandleStep = "writeFile" | "sync" | "truncate" | "read" | "stat" | "close";
type Step = keyof FileOperations | HandleStep;

/** A system code; or SHORT: a write stops half-way, as on a disk that fills up, and other steps fail with EIO. */
export type Fault = "ENOSPC" | "EIO" | "EMFILE" | "EACCES" | "EROFS" | "SHORT";

export const faults: readonly Fault[] = ["ENOSPC", "EIO", "EMFILE", "EACCES", "SHORT"];

export type FailingFiles = {
  readonly files: FileOperations;
  /** From now on each such step fails, until `repair`. */
  fail(step: Step, fault: Fault): void;
  /** The k-th file operation from now on and all later ones fail, until `repair`. */
  failFrom(k: number, fault: Fault): void;
  /** Only the k-th file operation from now on fails. */
  failOnce(k: number, fault: Fault): void;
  /** Ends all faults; returns whether one has occurred. */
  repair(): boolean;
};

const pathSteps = [
  ...(["copyFile", "link", "lstat", "mkdir", "open", "opendir"] as const),
  ...(["readdir", "rename", "rmdir", "unlink"] as const),
];
const handleSteps = new Set<PropertyKey>(["writeFile", "sync", "truncate", "read", "stat", "close"]);

export function failingFiles(): FailingFiles {
  const plan = new FaultPlan();
  return {
    files: {
      ...lightFiles,
      ...Object.fromEntries(pathSteps.map((step) => [step, failingOperation(step, plan)])),
    } as FileOperations,
    fail: (step, fault) => plan.fail(step, fault),
    failOnce: (k, fault) => plan.count(k, fault, false),
    failFrom: (k, fault) => plan.count(k, fault, true),
    repair: () => plan.repair(),
  };
}

/** Which steps fail. */
class FaultPlan {
  readonly #failing = new Map<Step, Fault>();
  #countdown = 0;
  #counted: Fault = "EIO";
  #forGood = false;
  #occurred = false;

  fail(step: Step, fault: Fault): void {
    this.#failing.set(step, fault);
  }

  count(k: number, fault: Fault, forGood: boolean): void {
    [this.#countdown, this.#counted, this.#forGood, this.#occurred] = [k, fault, forGood, false];
  }

  repair(): boolean {
    this.#failing.clear();
    this.#countdown = 0;
    return this.#occurred;
  }

  /** Returns the fault of this step. */
  due(step: Step): Fault | undefined {
    const fault = this.#failing.get(step) ?? this.#countDown();
    if (fault !== undefined) this.#occurred = true;
    return fault;
  }

  #countDown(): Fault | undefined {
    if (this.#countdown === 0) return undefined;
    if (this.#countdown > 1) {
      this.#countdown--;
      return undefined;
    }
    if (!this.#forGood) this.#countdown = 0;
    return this.#counted;
  }
}

function failingOperation(step: keyof FileOperations, plan: FaultPlan) {
  const operation = systemFiles[step] as (...args: unknown[]) => Promise<unknown>;
  return async (...args: unknown[]) => {
    const fault = plan.due(step);
    if (fault !== undefined) throw failure(fault);
    const result = await operation(...args);
    return step === "open" ? failingHandle(result as OpenFile, plan) : result;
  };
}

function failingHandle(handle: OpenFile, plan: FaultPlan): OpenFile {
  return new Proxy(handle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        const fault = handleSteps.has(name) ? plan.due(name as HandleStep) : undefined;
        if (fault !== undefined) await failWithHandle(target, name, fault, args);
        return Reflect.apply(member, target, args);
      };
    },
  });
}

/** A failed close still closes, and a short write writes a part. */
async function failWithHandle(handle: OpenFile, step: PropertyKey, fault: Fault, args: unknown[]): Promise<never> {
  if (step === "close") await handle.close();
  if (fault === "SHORT" && step === "writeFile") await writeHalf(handle, args[0] as Uint8Array);
  throw failure(fault);
}

async function writeHalf(handle: OpenFile, bytes: Uint8Array): Promise<void> {
  await handle.writeFile(bytes.subarray(0, bytes.length >>> 1));
  throw failure("ENOSPC");
}

function failure(fault: Fault): Error {
  const code = fault === "SHORT" ? "EIO" : fault;
  return Object.assign(new Error(`${code}: injected`), { code });
}
