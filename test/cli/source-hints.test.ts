/** Every command that a message, a help or a page of the source advises, executed as printed for a home that is not the default one. */
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { commands } from "../../src/cli/command-table.js";
import { createHints } from "../../src/cli/kit/hints.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, isInstalled, isRunning } from "../../tools/rig/process.js";
import { passphrase, realScryptCost, shareLocalServer, type TestServer } from "../../tools/rig/server.js";
import { runToItsEnd, stringIo } from "../../tools/rig/string-io.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { type Finished, runHere } from "../support/command-here.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { hasProgram } from "../support/session-bus.js";
import { must } from "./command-rows.js";
import { start } from "./run-command.js";
import { hintsInSource } from "./source-hints.js";

const pemKey = generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" }).toString();

const names = commands.map(({ name }) => name);

/** How a hint is executed; without a row it is executed as it is, and exits 0. */
type Row = {
  /** Words in place of the hint's, where the message fills in a value, or leaves it to the reader; `/x` is a file of the tests. */
  readonly call?: string;
  readonly exit?: number;
  readonly input?: string;
  /** On a terminal: what it asks, and what is typed. */
  readonly typed?: readonly (readonly [question: string, keys: string])[];
  /** It runs until a signal, which comes once it serves, or until it waits for what is next. */
  readonly endless?: "signal" | "sleep";
  /** Calls before it; what they print is `@1`, `@2` … in what is typed, a line each. */
  readonly before?: readonly string[];
};

const pass = ["assphrase of the vault", `${passphrase}\r`] as const;
const newOne = ["New passphrase: ", `${passphrase}\r`] as const;
const again = ["Repeat passphrase: ", `${passphrase}\r`] as const;
const noKey = ["Create a recovery key", "n\r"] as const;

/** In the order in which they are executed, before and after those without a row. */
const first: Readonly<Record<string, Row>> = {
  "config set * *": { call: "config set port 0" }, // for the servers that are started at the end
  "put app/db/password": { typed: [["Value of app/db/password: ", "value\r"]] },
  "put app/db/password --type password": { typed: [["Value of app/db/password: ", "another\r"]] },
  "put *": { call: "put app/new", input: "value" },
  "put PATH": { call: "put app/new", input: "another" },
  put: { call: "put app/other", input: "value" },
  "put --from-file": { call: "put tls/key --from-file /key.pem" },
  "put tls/key --from-file key.pem": { call: "put tls/key --from-file /key.pem" },
  "put tls/key --multiline": { typed: [["Value of tls/key", "a\rb\r\u0004"]] },
  "undo app/db/password --to 3": { call: "undo app/db/password --to 1" },
  "transit create": { call: "transit create app/made" },
  "transit import": { call: "transit import app/imported /key.pem" },
  "transit create app/backups": {},
  "transit create age/me --type x25519": {},
};

/** A menu, a clipboard, a service manager, a browser, an MCP server and a keyring of the desktop, each as a script. */
const standIns: Readonly<Record<string, string>> = {
  fzf: "head -n 1",
  xsel: "cat > /dev/null",
  systemctl: ":",
  "xdg-open": ":",
  "strongroom-mcp": ":",
  "secret-tool": 'case "$1" in store) cat > "$0.held" ;; lookup) cat "$0.held" ;; esac',
};

const rows: Readonly<Record<string, Row>> = {
  "* * *": { call: "cp app/ copy/" },
  "* --help": { call: "ls --help" },
  "age recipient NAME": { call: "age recipient age/me" },
  "agent run": { call: "agent run --no-sandbox -- true" },
  "agent run --use PATH": { call: "agent run --no-sandbox --use app/api-key -- true" },
  "agent run --use app/api-key -- npm test": { call: "agent run --no-sandbox --use app/api-key -- true" },
  "allow --revoke *": { call: "allow --revoke /.strongroom.toml" },
  approve: { endless: "sleep" },
  backup: { call: "backup /vault-2026-03.tar" },
  "backup vault-2026-03.tar": { call: "backup /vault-2026-03.tar" },
  browse: { typed: [["app/", "q"]] },
  "browse app/": { typed: [["db/", "q"]] },
  "check --breached pwned-passwords.txt": { call: "check --breached /pwned-passwords.txt", exit: 12 },
  "credentials --dir creds app/db/password": { call: "credentials --dir /creds app/db/password", endless: "signal" },
  "credentials --dir ~/.cache/creds app/db/password smtp=mail/password": {
    call: "credentials --dir /cached app/db/password smtp=mail/password",
    endless: "signal",
  },
  "encrypt app/backups": { input: "a dump" },
  encrypt: { call: "encrypt app/backups", input: "a dump" },
  "decrypt app/backups": { before: ["encrypt app/backups"], input: "@1" },
  decrypt: { call: "decrypt app/backups", before: ["encrypt app/backups"], input: "@1" },
  describe: { call: "describe app/key" },
  "doctor --open": { typed: [pass] },
  "doctor --store URL": { call: "doctor --store postgres://sr@127.0.0.1:1/vault", exit: 1 }, // no database is there
  "export --format json": { call: "export --format json --plaintext" },
  "export --format json --plaintext -o secrets.json": { call: "export --format json --plaintext -o /secrets.json" },
  get: { call: "get app/key" },
  "get *": { call: "get app/key" },
  "get * --field *": { call: "get app/json --field user" },
  "get * -o FILE": { call: "get app/key -o /FILE" },
  "git-credential get": { input: "protocol=https\nhost=git.example\n\n" },
  "history *": { call: "history app/key" },
  "import --prefix app .env": { call: "import --prefix app /.env" },
  init: { exit: 7 }, // there is a vault
  inject: { input: "{{ strongroom://app/key }}" },
  "inject -i config.template -o config.yaml": { call: "inject -i /config.template -o /config.yaml" },
  "key create": { typed: [pass] },
  "key create --label recovery": { call: "key create --label second", typed: [pass] },
  "key create -o FILE": { call: "key create --label third -o /recovery.key", typed: [pass] },
  "key rm *": { call: "key rm second", typed: [["[y/N]", "y\r"]] },
  keyring: {},
  "keyring -- COMMAND": { call: "keyring -- true" },
  "keyring -- gh auth login": { call: "keyring -- true" },
  "ls *": { call: "ls app" },
  migrate: { call: "migrate --from /none --to postgres://sr@127.0.0.1:1/vault", exit: 8 }, // no vault is there
  "migrate --from /srv/vault --to postgres://sr@db.example.org/vault": {
    call: "migrate --from /none --to postgres://sr@127.0.0.1:1/vault",
    exit: 8,
  },
  "mv -f * *": { call: "mv -f app/moved app/there" },
  otp: { call: "otp web/example/totp" },
  "restore vault-2026-03.tar --home /srv/strongroom": { call: "restore /vault-2026-03.tar --home /restored" },
  restore: { call: "restore /vault-2026-03.tar --home /restored" },
  "pick --menu fzf": { call: "pick --menu fzf --clear-after 0" }, // nothing is left to clear the clipboard later
  "rm *": { call: "rm app/removed" },
  "rm -r *": { call: "rm -r old" },
  "run --prefix app -- COMMAND": { call: "run --prefix app -- true" },
  "run --prefix app/ -- node server.js": { call: "run --prefix app -- true" },
  "run -e * -- command": { call: "run -e /.env.secrets -- true" },
  "run -e .env -- command": { call: "run -e /.env.secrets -- true" },
  "sign app/releases release.tar.gz": { call: "sign app/releases /release.tar.gz" },
  "ssh-agent -- git push": { call: "ssh-agent -- true" },
  "token create": { call: "token create made" },
  "token create ci --path app/ --ttl 30d --output ci.token": {
    call: "token create ci --path app/ --ttl 30d --output /ci.token",
  },
  "token revoke *": { call: "token revoke ci" },
  "token rotate NAME": { call: "token rotate made" },
  "transit show NAME --ssh": { call: "transit show ssh/me --ssh" },
  "trust --bundle roots.pem": { call: "trust --bundle /roots.pem" },
  "undo *": { call: "undo gone" },
  "undo PATH": { call: "undo gone-too" },
  undo: { call: "undo app/db/password" },
  "use add": { call: "use add app/key b.example" },
  "use add * HOST --oauth URL --client-id ID": {
    call: "use add app/json a.example --oauth https://a.example/t --client-id b",
  },
  "use login *": { call: "use login app/json", exit: 4 }, // the vault has no such login
  verify: { call: "verify app/releases /release.tar.gz --signature /release.sig" },
  "verify app/releases release.tar.gz --signature release.sig": {
    call: "verify app/releases /release.tar.gz --signature /release.sig",
  },
};

const last: Readonly<Record<string, Row>> = {
  "mv app/ web/": {},
  "rm -r app/ web/key": { call: "rm -r copy/ web/key" },
  "rotate-key --keep recovery=recovery.key": {
    call: "rotate-key --keep third=/recovery.key",
    typed: [pass, ["[y/N]", "y\r"]],
  },
  passphrase: { typed: [pass, newOne, again] },
  "token rotate": {},
  lock: {},
  unlock: { typed: [pass] },
  "unlock --shares": {
    before: ["key split --passphrase-file -", "lock"],
    typed: ["1", "2", "3"].map((which) => [`Share ${which}`, `@${which}\r`] as const),
  },
  "key create --keyring": { typed: [pass] },
  "unlock --keyring": { before: ["lock"] },
  "init --force": { typed: [["[y/N]", "y\r"], newOne, again, noKey] },
  "service install": {},
  "service install --keyring": {},
  shutdown: {},
  "token rotate --token-file *": { call: "token rotate --token-file /other.token" },
  "serve --port 13100 --idle-timeout 8h": { call: "serve --port 0 --idle-timeout 8h", endless: "signal" },
  serve: { endless: "signal" },
  "serve *": { call: "serve --port 0 --idle-timeout 8h", endless: "signal" },
  up: {},
  "up --idle-timeout 8h": { exit: 7 },
  "up --restart": {},
  "up --restart*": { call: "up --restart" },
  "up --port 0": {},
};

/** Hints that are not executed here, each with the reason. */
const notExecuted: Readonly<Record<string, string>> = {
  "*": "is `next: ` and a command that has its own row, or is the head of a program's screen",
  audit: "is the name of a format, not a hint",
  "audit 1": "is the name of a format, not a hint",
  "audit checkpoint 1": "is the name of a format, not a hint",
  "audit checkpoint 2": "is the name of a format, not a hint",
  "token 1": "is the name of a format, not a hint",
  "token changes": "is the name of a format, not a hint",
  run: "is a verb: the owner of the schema strongroom runs another command",
  prove: "reads the memory of a server that is a process: test/prove executes it",
  "prove --as-attacker": "reads the memory of a server that is a process: test/prove executes it",
  "prove --lock --with-canary": "reads the memory of a server that is a process: test/prove executes it",
};

/** Fills the vault and the directory with what the rows use. */
async function fill(started: TestServer, directory: string): Promise<void> {
  const paths =
    "app/database app/key app/moved app/removed app/db/password app/config app/api-key mail/password old/a gone gone-too";
  for (const path of paths.split(" ")) await mustPut(started, path, `value of ${path}`);
  await mustPut(started, "app/json", '{"user":"u"}');
  await mustPut(started, "web/example/totp", "otpauth://totp/me?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
  await mustPut(started, "cloud/aws", '{"accessKeyId":"AKIA","secretAccessKey":"secret"}');
  const files = {
    ".strongroom.toml": 'prefix = "app/"\n',
    ".env": "A=1\n",
    ".env.secrets": "A=strongroom://app/key\n",
    "config.template": "{{ strongroom://app/key }}\n",
    "other.token": started.token,
    "pwned-passwords.txt": "",
    "release.tar.gz": "a release",
    "key.pem": pemKey,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text, { mode: 0o600 });
  spawnSync("git", ["init", "-q", directory]);
  mkdirSync(join(directory, "bin"));
  for (const [name, script] of Object.entries(standIns))
    writeFileSync(join(directory, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  for (const call of [
    "rm gone gone-too",
    "transit create app/releases --type ed25519",
    "transit create ssh/me --type ed25519",
    "use add app/api-key api.example.com",
  ])
    await must({ STRONGROOM_HOME: started.home }, call.split(" "));
  const signing = ["sign", "app/releases", join(directory, "release.tar.gz")];
  writeFileSync(join(directory, "release.sig"), await must({ STRONGROOM_HOME: started.home }, signing));
}

type Shown = { readonly code: number | null; readonly shown: string };

const joinOutput = ({ code, stdout, stderr }: Finished): Shown => ({ code, shown: stdout + stderr });

/** Executes a call; text of the calls before it stands for `@1`, `@2` … in what is typed. */
class Calls {
  readonly #home: string;
  readonly #directory: string;
  #lines: readonly string[] = [];

  constructor(home: string, directory: string) {
    this.#home = home;
    this.#directory = directory;
  }

  async run(args: readonly string[], { before = [], typed, endless, input = "" }: Row): Promise<Shown> {
    const printed: string[] = [];
    for (const call of before) printed.push(await must(this.#environment, call.split(" "), passphrase));
    this.#lines = printed.join("").split("\n");
    if (typed !== undefined) return this.#runTyped(args, typed);
    if (endless !== undefined) return this.#runEndless(args, endless);
    const text = this.#filled(input);
    const ended = !isInstalled
      ? await runHere(args, this.#environment, text, { cwd: this.#directory })
      : await start({ home: this.#home }, args, { environment: this.#environment, input: text, cwd: this.#directory })
          .finished;
    for (const [, pid] of ended.stdout.matchAll(/_PID=(\d+)/g)) await endProcess(Number(pid));
    return joinOutput(ended);
  }

  get #environment(): Record<string, string> {
    return {
      STRONGROOM_HOME: this.#home,
      PATH: `${join(this.#directory, "bin")}:${process.env["PATH"]}`,
      HOME: this.#directory,
      XDG_DATA_HOME: this.#directory,
      DISPLAY: ":0",
      VISUAL: "true",
    };
  }

  #filled(text: string): string {
    return text.replace(/@(\d)/g, (_, number: string) => this.#lines[Number(number) - 1] ?? "");
  }

  async #runTyped(args: readonly string[], typed: NonNullable<Row["typed"]>): Promise<Shown> {
    const reactions = typed.map(([question, keys]) => ({ question, keys: this.#filled(keys) }));
    return runOnTerminal(args, reactions, this.#environment);
  }

  async #runEndless(args: readonly string[], endless: "signal" | "sleep"): Promise<Shown> {
    if (isInstalled || args.includes("serve")) {
      const { child, finished } = start({ home: this.#home }, args, { environment: this.#environment });
      child.stdout.once("data", () => child.kill("SIGTERM"));
      return joinOutput(await finished);
    }
    const io = stringIo({ env: environment(this.#environment), kill: () => {} });
    if (endless === "sleep") Object.assign(io, { sleep: () => io.exit(0) });
    let isEnded = false;
    const running = runToItsEnd(args, io).finally(() => {
      isEnded = true;
    });
    while (!isEnded && io.events.listenerCount("SIGTERM") < 2) await sleep(5); // it serves then
    io.events.emit("SIGTERM", "SIGTERM");
    await running;
    return joinOutput({ code: io.exitCode, ...io.printed() });
  }
}

/** Ends a process that went to the background. */
async function endProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  while (isRunning(pid)) await sleep(5);
}

describe("hints of the source", function () {
  this.timeout(300_000);
  let directory = "";
  const server = shareLocalServer({ ...realScryptCost, brokerPort: 0, vaultPort: 0 }, async (started) => {
    await mustInit(started);
    directory = temporaryDirectory();
    await fill(started, directory);
  });
  const hints = hintsInSource(names);
  const executed: Readonly<Record<string, Row>> = {
    ...first,
    ...Object.fromEntries(hints.filter(isPlain).map((hint) => [hint, {}])),
    ...rows,
    ...last,
  };

  function isPlain(hint: string): boolean {
    return ![first, rows, last, notExecuted].some((each) => hint in each);
  }

  it("each hint of the source has a row that executes it or says why not, and each row has its hint", () => {
    const all = [first, rows, last, notExecuted].flatMap((each) => Object.keys(each));
    expect(all.filter((hint) => !hints.includes(hint))).to.deep.equal([]);
    expect(all).to.have.length(new Set(all).size);
    expect(hints).to.have.length.above(170);
  });

  it("the source's hints, executed as printed, act on the home of the call that names them", async function () {
    needs(this, hasPython() && hasProgram("git"), "Python and git");
    const calls = new Calls(server().home, directory);
    later(async () => void (await calls.run(["shutdown"], {})));
    const wrong: string[] = [];
    const done = new Set<string>(); // hints that differ in what a reader fills in may be one call
    for (const [hint, row] of Object.entries(executed)) {
      const { call = hint, exit = 0 } = row;
      if (done.has(call)) continue;
      done.add(call);
      const { code, shown } = await calls.run(printedWords(call), row);
      if (code === exit && !/no server|unknown|Did you mean/.test(shown)) continue;
      wrong.push(`${hint}: ${printedWords(call).join(" ")}: exit ${code}: ${shown}`);
    }
    expect(wrong.join("\n")).to.equal("");
  });

  /** Returns the words of a call as a message with this home prints it. */
  function printedWords(call: string): string[] {
    const line = `strongroom ${call}`;
    const [, ...words] = (line.includes(" --home ") ? line : createHints(["--home", server().home], names)(line)).split(
      " ",
    );
    return words.map((word) => word.replace(/(?<=^|=)\/(?!.*\/)/, `${directory}/`));
  }
});
