/** A shell in a real terminal of its own (tmux), as a person uses it. */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";

/** Keys, typed once the terminal shows the question; a newline at the end is the Enter key. */
export type Reaction = readonly [question: RegExp, keys: string];

type Options = { readonly reactions?: readonly Reaction[]; readonly exit?: number };

/** Questions of `init` on a terminal: a weak passphrase is given up for this one, and no recovery key is made. */
export function firstPassphrase(strong: string): readonly Reaction[] {
  return [
    [/New passphrase:\s*$/m, "hunter2\n"],
    [/Use it anyway\?/, "n\n"],
    [/type another one\s+Type a passphrase.*\s+New passphrase:\s*$/m, `${strong}\n`],
    [/Repeat passphrase:\s*$/m, `${strong}\n`],
    [/recovery key/, "n\n"],
  ];
}

export function hasTmux(): boolean {
  return spawnSync("tmux", ["-V"]).status === 0; // Debian: tmux
}

export class Shell {
  readonly #socket: string;
  #step = 0;

  /** Begins in the directory, with this environment and nothing else. */
  constructor(
    directory: string,
    environment: Readonly<Record<string, string>>,
    { columns = 300, rows = 50, program = "sh", socket = join(directory, "tmux") } = {},
  ) {
    this.#socket = socket;
    const size = ["-x", `${columns}`, "-y", `${rows}`];
    execFileSync("tmux", ["-f", "/dev/null", "-S", this.#socket, "new-session", "-d", ...size, program], {
      env: { ...environment, PS1: "$ " },
      cwd: directory,
    });
    later(() => this.close());
  }

  /** How many commands were typed. */
  get commands(): number {
    return this.#step;
  }

  /** Types a command, answers its questions, and returns what it showed, with wrapped lines joined. */
  async run(command: string, { reactions = [], exit = 0 }: Options = {}): Promise<string> {
    this.#step += 1;
    this.clear();
    this.type(`${command}; echo end-${this.#step}=$?\n`);
    for (const [question, keys] of reactions) {
      await this.shows(question);
      this.type(keys);
    }
    const shown = await this.shows(new RegExp(`^end-${this.#step}=\\d+$`, "m"));
    expect(shown, shown).to.match(new RegExp(`^end-${this.#step}=${exit}$`, "m"));
    return shown.slice(shown.indexOf("\n") + 1, shown.lastIndexOf(`end-${this.#step}=`));
  }

  /** Types a command and some keys at its question, then Ctrl-Z, which gives the shell back. */
  async stop(command: string, question: RegExp, keys: string): Promise<void> {
    this.type(`${command}\n`);
    await this.shows(question);
    this.type(keys);
    this.press("C-z");
    await this.shows(/Stopped|suspended/i);
  }

  type(keys: string): void {
    this.#tmux("send-keys", "-l", keys.replace(/\n$/, ""));
    if (keys.endsWith("\n")) this.press("Enter");
  }

  /** By tmux's name, such as `C-z`, `Escape` and `Tab`. */
  press(key: string): void {
    this.#tmux("send-keys", key);
  }

  resize(columns: number, rows: number): void {
    this.#tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`);
  }

  clear(): void {
    this.#tmux("send-keys", "-R");
    this.#tmux("clear-history");
  }

  /** Returns the lines of the screen, and those that have scrolled away; each line as wide as the terminal at most. */
  screen(): string {
    return this.#tmux("capture-pane", "-p", "-S", "-");
  }

  /** Waits until the terminal shows the pattern; returns all that it shows, with wrapped lines joined. */
  async shows(pattern: RegExp): Promise<string> {
    let shown = "";
    for (let left = 1_000; left > 0; left -= 1) {
      shown = this.#tmux("capture-pane", "-p", "-J", "-S", "-").replace(/ +$/gm, "");
      if (pattern.test(shown)) return shown;
      await sleep(50);
    }
    throw new Error(`the terminal never showed ${pattern}, but: ${shown}`);
  }

  /** Hangs up, as a closed window does. */
  close(): void {
    spawnSync("tmux", ["-S", this.#socket, "kill-server"]);
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync("tmux", ["-S", this.#socket, ...args], { encoding: "utf8" });
  }
}
