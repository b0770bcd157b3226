/** The vault on the screen: keys, what they do, and how long a value is shown. */

import { problemOfPath } from "../../cli/kit/args/paths.js";
import { codeHereOrInside } from "../../cli/kit/connection/one-time-code.js";
import { lookAt, mustGetHistory } from "../../cli/kit/connection/secrets.js";
import { unlockOnTerminal } from "../../cli/kit/connection/server.js";
import { CommandFailure, clientFailure } from "../../cli/kit/errors.js";
import { shellWord } from "../../cli/kit/hints.js";
import type { Io } from "../../cli/kit/io.js";
import { type Paint, printable, withHints } from "../../cli/kit/output.js";
import type { OwnCommands } from "../../cli/kit/programs/own-commands.js";
import { type SecretList, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { Catalog } from "./catalog.js";
import type { Key } from "./keys.js";
import { Revealed } from "./revealed.js";
import { type Line, Screen } from "./screen.js";
import {
  drawScreen,
  heights,
  type Input,
  keepInSight,
  type Pane,
  secretsPane,
  type TrashPane,
  trashPane,
  type VersionsPane,
  versionsPane,
} from "./view.js";

type BrowserDependencies = {
  readonly client: StrongroomClient;
  readonly commands: OwnCommands;
  readonly paint: Paint;
  /** Prefix of the listed paths: nothing, or a folder with its slash. */
  readonly prefix: string;
  /** The first page of the list, which is shown immediately. */
  readonly first: SecretList;
  /** The terminal's mode, as `terminalMode` returns it. */
  readonly mode: string;
  /** How long a value is shown. */
  readonly revealMs: number;
};

type Box = { readonly title: string; readonly lines: readonly Line[]; readonly wipe: () => void };

/** A line that is typed, and what becomes of it: null after Escape. */
type Asked = Input & { readonly onChange?: (text: string) => void; readonly onEnd: (text: string | null) => void };

const help = [
  "/  search paths and descriptions, Esc shows all    arrows, j k, PgUp PgDn  move",
  "r  reveal the value    c  copy it    o  one-time code    O  copy the code",
  "v  versions, and what each changed    u  undo the last change",
  "e  edit in your editor    n  new secret    g  generate a value",
  "d  move to the trash    t  show the trash, to bring back or delete",
  "R  load the list again    Ctrl-Z  suspend",
  "L  lock the vault and quit    q  quit",
];

export class Browser {
  readonly #io: Io;
  readonly #with: BrowserDependencies;
  readonly #catalog = new Catalog();
  readonly #screen: Screen;
  readonly #secrets: Pane;
  readonly #ending = new AbortController();
  #pane: Pane;
  #versions: VersionsPane | null = null;
  #trash: TrashPane | null = null;
  #box: Box | null = null;
  #stopHiding = () => {};
  #message: { readonly text: string; readonly isProblem: boolean } | null = null;
  #asked: Asked | null = null;
  #isBusy = false;
  /** Typed while an action runs. */
  #queued: Key[] = [];
  #end: (farewell: string | null) => void = () => {};
  #fail: (error: unknown) => void = () => {};

  constructor(io: Io, dependencies: BrowserDependencies) {
    this.#io = io;
    this.#with = dependencies;
    this.#secrets = secretsPane(this.#catalog, dependencies.prefix, io.clock.now);
    this.#pane = this.#secrets;
    this.#screen = new Screen(io, dependencies.mode, {
      onKey: (key) => this.#takeKey(key),
      onRedraw: () => this.#draw(),
      onStop: () => this.#hide(),
    });
  }

  /** Shows the screen until the user leaves it; returns what to say then, or null. @throws StrongroomError, CommandFailure */
  async run(): Promise<string | null> {
    const ended = new Promise<string | null>((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
    });
    this.#screen.enter();
    try {
      this.#load(this.#with.first);
      return await ended;
    } finally {
      this.#ending.abort();
      this.#hide();
      this.#screen.close();
    }
  }

  /** Loads the list in the background, with or without the first page. */
  #load(first?: SecretList): void {
    const { client, prefix } = this.#with;
    this.#catalog
      .load(client, prefix, this.#ending.signal, () => this.#draw(), first)
      .then(() => this.#draw())
      .catch((error: unknown) => (this.#ending.signal.aborted ? undefined : this.#report(error)))
      .catch((error: unknown) => this.#fail(error));
    this.#draw();
  }

  #draw(): void {
    keepInSight(this.#pane, this.#screen.size);
    const content = { pane: this.#pane, box: this.#box, message: this.#message, input: this.#asked };
    const { lines, cursor } = drawScreen(content, this.#screen.size, this.#with.paint);
    this.#screen.draw(lines, cursor);
  }

  #takeKey(key: Key): void {
    if (key.name === "ctrl-z") this.#screen.stop();
    else if (this.#asked !== null) this.#type(this.#asked, key);
    else if (key.name === "ctrl-c" || (key.text === "q" && key.name === "text" && this.#queued.length === 0)) {
      this.#leave(null);
    } else if (!this.#isBusy) this.#command(key);
    else if (this.#queued.length < mostQueued) this.#queued.push(key);
    this.#draw();
  }

  /** Takes what was typed ahead, up to the next action, or to the end of a question. */
  #takeQueued(): void {
    while (this.#asked !== null || !this.#isBusy) {
      const [key, ...rest] = this.#queued;
      if (key === undefined) return;
      this.#queued = rest;
      if (this.#asked === null && key.name === "text" && key.text === "q") this.#leave(null);
      else this.#takeKey(key);
    }
  }

  #leave(farewell: string | null): void {
    this.#queued = [];
    this.#end(farewell);
  }

  #type(asked: Asked, { name, text }: Key): void {
    const before = asked.text;
    if (name === "up" || name === "down") this.#move(name);
    else if (name === "enter" || name === "escape" || name === "ctrl-c") {
      this.#asked = null;
      asked.onEnd(name === "enter" ? asked.text : null);
    } else if (name === "text" || name === "paste") asked.text += text;
    else if (name === "backspace") asked.text = [...asked.text].slice(0, -1).join("");
    else if (name === "ctrl-u") asked.text = "";
    if (asked.text !== before) asked.onChange?.(asked.text);
  }

  #command(key: Key): void {
    if (key.name === "paste") return;
    this.#hide();
    this.#message = null;
    if (this.#move(moves[key.text] ?? key.name)) return;
    const action = this.#keyAction(key.name === "text" ? key.text : key.name);
    if (action !== null) void this.#do(action);
  }

  /** Returns whether this is a key that moves. */
  #move(name: string): boolean {
    const page = heights(this.#screen.size).list;
    const steps: Readonly<Record<string, number>> = { up: -1, down: 1, "page up": -page, "page down": page };
    const step = { ...steps, home: Number.NEGATIVE_INFINITY, end: this.#pane.count() }[name];
    if (step === undefined) return false;
    this.#pane.selected = Math.max(0, this.#pane.selected + step);
    keepInSight(this.#pane, this.#screen.size);
    return true;
  }

  /** Runs what a key does, one at a time; shows how it failed. */
  async #do(action: () => Promise<void>): Promise<void> {
    this.#isBusy = true;
    try {
      await action().catch((error: unknown) => {
        this.#queued = []; // it was typed for another outcome
        return this.#report(error);
      });
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isBusy = false;
      this.#takeQueued();
      this.#draw();
    }
  }

  /** @throws what is no failure of a request */
  async #report(error: unknown): Promise<void> {
    if (!(error instanceof StrongroomError || error instanceof CommandFailure)) throw error;
    const { exit, message } = await clientFailure(error, this.#with.client);
    if (exit === "locked") return this.#unlock();
    this.#say(message, true);
  }

  async #unlock(): Promise<void> {
    const question = "the vault is locked\nPassphrase of the vault: ";
    this.#queued = []; // no part of a passphrase
    await this.#screen.leaveFor(() => unlockOnTerminal(this.#io, this.#with.client, question));
    this.#say("the vault is unlocked: repeat what you wanted to do");
    if (this.#catalog.total === 0) this.#load();
  }

  #say(text: string, isProblem = false): void {
    this.#message = { text: withHints(this.#io, text), isProblem };
    this.#draw();
  }

  #keyAction(key: string): (() => Promise<void>) | null {
    if (key === "L") return () => this.#lock();
    if (key === "ctrl-l") return async () => this.#draw();
    if (this.#pane === this.#secrets) return this.#always(key) ?? this.#ofSecret(key);
    if (key === "escape") return async () => this.#backToSecrets();
    return this.#trash === null ? this.#ofVersion(key) : this.#ofTrashed(key, this.#trash);
  }

  #ofSecret(key: string): (() => Promise<void>) | null {
    const entry = this.#catalog.at(this.#pane.selected);
    if (entry === undefined) return null;
    const { path } = entry;
    const actions: Readonly<Record<string, () => Promise<void>>> = {
      r: () => this.#reveal(path, entry.encoding),
      c: () => this.#copy(path),
      o: () => this.#showCode(path),
      O: () => this.#copyCode(path),
      v: () => this.#openVersions(path),
      enter: () => this.#openVersions(path),
      u: () => this.#undo(path),
      e: () => this.#editIn("edit", path),
      d: () => this.#delete(path, entry.etag),
    };
    return actions[key] ?? null;
  }

  /** Returns the action of a key that needs no secret. */
  #always(key: string): (() => Promise<void>) | undefined {
    const actions: Readonly<Record<string, () => Promise<void>>> = {
      "/": async () => this.#search(),
      escape: async () => this.#find(""),
      "?": async () => this.#show("keys", help),
      n: () => this.#make("put", "Path of the new secret: "),
      g: () => this.#make("generate", "Generate a value for the path: "),
      t: () => this.#openTrash(),
      R: async () => this.#load(),
    };
    return actions[key];
  }

  #ofVersion(key: string): (() => Promise<void>) | null {
    const [path, found] = [this.#versions?.history.path ?? "", this.#versions?.history.versions[this.#pane.selected]];
    if (found === undefined) return null;
    const at = `--at=${found.version}`;
    const actions: Readonly<Record<string, () => Promise<void>>> = {
      r: () => this.#reveal(path, found.encoding, at),
      c: () => this.#copy(path, at),
      u: () => this.#restore(path, found.version),
    };
    return actions[key] ?? null;
  }

  #ofTrashed(key: string, { entries }: TrashPane): (() => Promise<void>) | null {
    const found = entries[this.#pane.selected];
    if (found === undefined) return null;
    const actions: Readonly<Record<string, () => Promise<void>>> = {
      u: () => this.#bringBack(found.path),
      d: () => this.#destroy(found.path),
    };
    return actions[key] ?? null;
  }

  #search(): void {
    const before = this.#catalog.query;
    this.#asked = {
      question: "/",
      text: before,
      onChange: (text) => this.#find(text),
      onEnd: (text) => this.#find(text ?? ""),
    };
  }

  /** Keeps the selected secret selected where the search still finds it. */
  #find(query: string): void {
    const path = this.#catalog.at(this.#secrets.selected)?.path ?? "";
    this.#catalog.search(query);
    this.#select(path);
  }

  #select(path: string): void {
    const at = this.#catalog.indexOf(path);
    this.#secrets.selected = this.#catalog.at(at)?.path === path || this.#catalog.query === "" ? at : 0;
  }

  async #reveal(path: string, encoding: "base64" | undefined, ...at: readonly string[]): Promise<void> {
    if (encoding !== undefined) {
      return this.#say(`binary value: write it to a file with  strongroom get ${shellWord(path)} -o FILE`, true);
    }
    const value = await this.#with.commands.run("get", ...at, "--", path);
    const { columns } = this.#screen.size;
    const revealed = new Revealed(value, columns, heights(this.#screen.size).details);
    value.fill(0);
    this.#show(`value of ${path}${revealed.isCut ? ", cut: copy it with c" : ""}`, revealed.lines, () =>
      revealed.wipe(),
    );
    this.#hideAfter(this.#with.revealMs);
  }

  async #copy(path: string, ...at: readonly string[]): Promise<void> {
    await this.#with.commands.run("get", "--copy", ...at, "--", path);
    this.#say(`${path} is in the clipboard for 45 s`);
  }

  async #showCode(path: string): Promise<void> {
    const { path: found, code, validFor } = await codeHereOrInside(this.#with.client, path);
    this.#show(`one-time code of ${found}, valid for ${validFor} s`, [code]);
    this.#hideAfter(Math.min(this.#with.revealMs, validFor * 1000));
  }

  async #copyCode(path: string): Promise<void> {
    await this.#with.commands.run("otp", "--copy", "--", path);
    this.#say(`the code of ${path} is in the clipboard`);
  }

  #show(title: string, lines: readonly Line[], wipe: () => void = () => {}): void {
    this.#hide();
    this.#box = { title, lines, wipe };
    this.#draw();
  }

  #hideAfter(ms: number): void {
    this.#stopHiding = this.#io.clock.after(ms, () => {
      this.#hide();
      this.#draw();
    });
  }

  /** Wipes what is shown; the next drawing erases it. */
  #hide(): void {
    this.#stopHiding();
    this.#box?.wipe();
    this.#box = null;
  }

  async #openVersions(path: string): Promise<void> {
    this.#versions = versionsPane(await mustGetHistory(this.#with.client, path));
    this.#pane = this.#versions;
  }

  async #openTrash(): Promise<void> {
    const { entries, next } = await this.#with.client.listTrash({ prefix: this.#with.prefix, limit: 1000 });
    if (entries.length === 0) return this.#say("the trash is empty");
    this.#trash = trashPane(entries, next !== undefined);
    this.#pane = this.#trash;
  }

  async #bringBack(path: string): Promise<void> {
    await this.#with.client.untrash(path);
    this.#backToSecrets();
    await this.#refresh(path);
    this.#say(`${path} is back`);
  }

  async #destroy(path: string): Promise<void> {
    if (!(await this.#confirm(`Delete ${path} in the trash permanently? [y/N] `))) return;
    await this.#with.client.destroyTrashed(path);
    this.#backToSecrets();
    this.#say(`${path} is deleted permanently`);
  }

  #backToSecrets(): void {
    this.#versions = null;
    this.#trash = null;
    this.#pane = this.#secrets;
  }

  async #undo(path: string): Promise<void> {
    const { versions } = await mustGetHistory(this.#with.client, path);
    const [newest, before] = versions;
    if (newest === undefined || before === undefined) return this.#say(`${path} has no earlier version`, true);
    await this.#goBack(path, before.version, newest.etag);
  }

  async #restore(path: string, version: number): Promise<void> {
    const newest = this.#versions?.history.versions[0];
    if (newest === undefined || newest.version === version) return this.#say(`version ${version} is the newest`, true);
    await this.#goBack(path, version, newest.etag);
  }

  async #goBack(path: string, version: number, ifMatch: string): Promise<void> {
    if (!(await this.#confirm(`Restore version ${version} of ${path}? [y/N] `))) return;
    const stored = await this.#with.client.undo(path, version, { ifMatch });
    this.#backToSecrets();
    await this.#refresh(path);
    this.#say(`${path} restored to version ${version}, stored as version ${stored.version}`);
  }

  async #delete(path: string, ifMatch: string): Promise<void> {
    if (!(await this.#confirm(`Move ${path} to the trash? [y/N] `))) return;
    await this.#with.client.trash(path, { ifMatch });
    await this.#refresh(path);
    this.#say(`${path} is in the trash: t shows it`);
  }

  /** `command` creates the secret whose path is typed. */
  async #make(command: "put" | "generate", question: string): Promise<void> {
    const here = this.#catalog.at(this.#secrets.selected)?.path ?? this.#with.prefix;
    const path = await this.#ask(question, here.slice(0, here.lastIndexOf("/") + 1));
    if (path === null || path === "") return;
    const problem = problemOfPath(path);
    if (problem !== null) return this.#say(problem, true);
    const isThere = (await lookAt(this.#with.client, path)) !== null;
    if (isThere && !(await this.#confirm(`${path} exists. Replace its value? [y/N] `))) return;
    if (command === "put") return this.#editIn("put", path);
    await this.#with.commands.run("generate", ...(isThere ? ["--replace"] : []), "--", path);
    await this.#refresh(path);
    this.#say(`${path} generated: r reveals it, c copies it`);
  }

  /** Runs a command that needs the terminal: a failure stays to be read. */
  async #editIn(command: "edit" | "put", path: string): Promise<void> {
    this.#queued = [];
    const done = await this.#screen.leaveFor(async () => {
      const succeeded = await this.#with.commands.runOnTerminal(command, "--", path);
      if (!succeeded) await this.#io.sleep(readingMs);
      return succeeded;
    });
    await this.#refresh(path);
    if (done) this.#say(`${path}: done`);
    else this.#say(`${command} did not store anything`, true);
  }

  async #refresh(path: string): Promise<void> {
    const found = await lookAt(this.#with.client, path);
    this.#catalog.replace(path.normalize("NFC"), found?.entry ?? null);
    this.#select(path.normalize("NFC"));
  }

  async #lock(): Promise<void> {
    this.#hide();
    const { message } = await this.#with.client.lock();
    this.#leave(message);
  }

  /** Discards keys typed ahead: they are no reply. */
  async #confirm(question: string): Promise<boolean> {
    this.#queued = [];
    return /^y(?:es)?$/i.test((await this.#ask(question, ""))?.trim() ?? "");
  }

  #ask(question: string, text: string): Promise<string | null> {
    const reply = new Promise<string | null>((resolve) => {
      this.#asked = { question: printable(question), text, onEnd: resolve };
    });
    this.#takeQueued();
    this.#draw();
    return reply;
  }
}

/** How long a failure of a command is shown before the screen comes back. */
const readingMs = 2_000;

const mostQueued = 100;

const moves: Readonly<Record<string, string>> = { j: "down", k: "up", G: "end" };
