/** `strongroom approve --hook`: a program decides about each request that waits. */
import type { ChildProcess } from "node:child_process";
import { type Approval, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printLine, say } from "../kit/output.js";
import { startProgram } from "../kit/programs/child-process.js";

/** Most hooks that run at the same time. */
const mostAtOnce = 16;

/** How long a hook may take, in milliseconds. */
const longestMs = 60_000;

const refreshMs = 500;

type HookOptions = {
  /** The program, without arguments: no shell reads it. */
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Whether to end once what waits now is decided. */
  readonly once: boolean;
  readonly quiet: boolean;
};

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * Runs the hook for each request that waits. A signal ends the hooks, which have process groups of their own, and then this one.
 * @throws CommandFailure usage, where approvals need the passphrase; StrongroomError
 */
export async function decideByHook(io: Io, client: StrongroomClient, options: HookOptions): Promise<void> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => stop.abort(signal);
  const hooks = new Hooks(io, client, options, stop);
  for (const ending of endings) io.events.on(ending, onSignal);
  try {
    await hooks.run();
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    if (stop.signal.reason instanceof Error) throw stop.signal.reason;
  } finally {
    for (const ending of endings) io.events.off(ending, onSignal);
    hooks.close();
  }
  if (stop.signal.aborted) io.kill(io.pid, stop.signal.reason as NodeJS.Signals);
}

class Hooks {
  readonly #io: Io;
  readonly #client: StrongroomClient;
  readonly #options: HookOptions;
  /** Aborted with a signal, or with why a decision could not be sent. */
  readonly #stop: AbortController;
  /** Until their decision is sent. */
  readonly #running = new Map<string, ChildProcess>();
  /** Requests that a hook was started for, while they wait. */
  readonly #seen = new Set<string>();

  constructor(io: Io, client: StrongroomClient, options: HookOptions, stop: AbortController) {
    this.#io = io;
    this.#client = client;
    this.#options = options;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    for (;;) {
      const { approvals, passphrase } = await this.#client.listApprovals();
      if (passphrase === true) throw new CommandFailure("usage", needsPassphrase);
      this.#endOthers(new Set(approvals.map(({ id }) => id)));
      const waiting = approvals.filter(({ id }) => !this.#seen.has(id));
      for (const approval of waiting.slice(0, mostAtOnce - this.#running.size)) this.#start(approval);
      if (this.#options.once && this.#running.size === 0) return;
      await this.#io.sleep(refreshMs, this.#stop.signal);
    }
  }

  close(): void {
    for (const child of this.#running.values()) this.#kill(child);
  }

  /** Ends the hooks of requests that no longer wait. */
  #endOthers(listed: ReadonlySet<string>): void {
    for (const id of this.#seen) if (!listed.has(id)) this.#seen.delete(id);
    for (const [id, child] of this.#running) if (!listed.has(id)) this.#kill(child);
  }

  #start(approval: Approval): void {
    const { program, environment } = this.#options;
    const { id } = approval;
    this.#seen.add(id);
    const child = startProgram([program], environment, { stdio: ["pipe", "ignore", "inherit"], detached: true });
    this.#running.set(id, child);
    child.stdin?.on("error", () => {}); // it need not read it
    child.stdin?.end(`${JSON.stringify(approval)}\n`);
    const cancel = this.#io.clock.after(longestMs, () => this.#kill(child));
    const ended = async (approve: boolean) => {
      cancel();
      await this.#decide(approval, approve).catch((error: unknown) => this.#stop.abort(error));
      this.#running.delete(id);
    };
    child.once("error", () => void ended(false)).once("exit", (code) => void ended(code === 0));
  }

  async #decide(approval: Approval, approve: boolean): Promise<void> {
    const { id, method, host, port, path, token } = approval;
    try {
      await this.#client.decideApproval(id, { approve, for: "request" });
    } catch (error) {
      if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
      return say(this.#io, "the request no longer waits\n");
    }
    if (this.#options.quiet) return;
    printLine(
      this.#io,
      `${approve ? "approved" : "refused"}: ${method} ${host}:${port}, secret ${path}, token ${token}`,
    );
  }

  /** Ends a hook with the programs that it has started. */
  #kill({ pid, exitCode, signalCode }: ChildProcess): void {
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      this.#io.kill(-pid, "SIGKILL");
    } catch {
      // it has ended
    }
  }
}

const needsPassphrase =
  "this server approves with the passphrase, which a hook does not have: run  strongroom approve  on a terminal";
