/** Commands that messages advise, executed as printed for a home that is not the default one. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { commands } from "../../src/cli/command-table.js";
import { createHints } from "../../src/cli/kit/hints.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom } from "./command-rows.js";

const names = commands.map(({ name }) => name);

/** Returns the commands of a message, which stand between double spaces or at the end of a line, as words. */
function advisedIn(text: string): string[][] {
  const found = text.matchAll(/(?:^| {2}|: |, |; |; or run |\()strongroom ((?:[^\s;:,)]| (?! ))+)/gm);
  return [...found].map(([, words = ""]) =>
    words
      .trim()
      .split(" ")
      .map((word) => word.replace(/^'(.*)'$/, "$1")),
  );
}

describe("a command that a message advises", () => {
  const home = () => join(temporaryDirectory(), "my home");
  const unlocked = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "value");
  });

  it("carries --home, --address and files of this call, where it takes them", () => {
    const hints = createHints(["ls", "--home=/srv/my vault", "--address", "https://a:1", "--", "--cacert", "x"], names);
    expect(hints("unlock it with  strongroom unlock")).to.equal(
      "unlock it with  strongroom --home '/srv/my vault' --address 'https://a:1' unlock",
    );
    expect(hints("start it with  strongroom up --port 0")).to.equal(
      "start it with  strongroom --home '/srv/my vault' up --port 0",
    );
    for (const text of ["strongroom help lists the commands", "usage: strongroom <command>", "/strongroom unlock"])
      expect(hints(text)).to.equal(text);
    expect(createHints(["ls"], names)("strongroom unlock")).to.equal("strongroom unlock");
  });

  /** Calls with `--home`, and the exit codes of the calls and of what they advise. */
  const rows: readonly (readonly [what: string, args: readonly string[], exit: number, advised: readonly number[]])[] =
    [
      ["a missing secret", ["get", "missing"], 4, [0]],
      ["a missing transit key", ["encrypt", "missing"], 4, [0]],
      ["a missing key", ["key", "rm"], 2, [0]],
      ["an unknown flag", ["ls", "--nonsense"], 2, [0]],
      ["the settings", ["config"], 0, [0]],
      ["an unknown setting", ["config", "get", "nonsense"], 2, [0]],
      ["a secret in the trash", ["rm", "app/key"], 0, [0]],
      ["a second vault", ["init"], 7, [0]],
      ["a moved secret", ["mv", "missing", "there"], 4, [0]],
    ];
  for (const [what, args, exit, wanted] of rows) {
    it(`acts on the home of the call that names it: ${what}`, async () => {
      const own = ["--home", unlocked().home];
      const { code, stdout, stderr } = await strongroom({}, [...own, ...args]);
      expect(code, stdout + stderr).to.equal(exit);
      const advised = advisedIn(stdout + stderr);
      expect(advised, stdout + stderr).to.have.length(wanted.length);
      for (const [i, words] of advised.entries()) {
        expect(words.join(" ")).to.contain(unlocked().home);
        const ended = await strongroom({}, words);
        expect(ended.code, `strongroom ${words.join(" ")}: ${ended.stderr}`).to.equal(wanted[i]);
      }
    });
  }

  it("acts on the home of the call that names it: a locked vault, no vault, and no server", async () => {
    const server = await startLocalServer();
    const own = ["--home", server.home];
    const advise = async (args: readonly string[]) => {
      const { stdout, stderr } = await strongroom({}, [...own, ...args, "--non-interactive"]);
      const [words = []] = advisedIn(stdout + stderr);
      expect(words.slice(0, 2), stdout + stderr).to.deep.equal(own);
      return words;
    };
    expect((await advise(["ls"])).at(-1)).to.equal("init");
    await mustInit(server);
    await mustLock(server);
    const unlock = await advise(["ls"]);
    expect(unlock.at(-1)).to.equal("unlock");
    const unlocking = await strongroom({}, [...unlock, "--passphrase-file", "-"], "wrong");
    expect(unlocking.code, unlocking.stderr).to.equal(9);
    const none = home();
    const { stderr } = await strongroom({}, ["ls", "--home", none]);
    expect(stderr).to.contain(`start it with  strongroom --home '${none}' up`);
  });
});

/** Words that begin what a message says of a command. */
const prose = new Set(
  (
    "and as brings copies created does for has holds it lists listens lock names needs opens or over path prints reaches " +
    "redirect saves says shows stops takes that the them this tries to until where which with without writes"
  ).split(" "),
);

/** Returns the commands in the messages of the source, cut where prose goes on; `*` stands for a value. */
function hintsInSource(): string[] {
  const root = new URL("../../../src/", import.meta.url);
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    /^(?!cli\/completion).*\.ts$/.test(name),
  );
  const found = files.flatMap((file) => {
    let text = readFileSync(new URL(file, root), "utf8").replaceAll(/\/\*.*?\*\/|(?<=^|\s)\/\/.*?$/gms, "");
    for (let before = ""; before !== text; ) {
      before = text;
      text = text.replaceAll(/\$\{[^{}]*\}/g, "*");
    }
    const hints = text
      .replaceAll(/["`] \+\n\s*["`]/g, "")
      .matchAll(/(?<![\w/.@-])strongroom ((?:[^\s"`;,)(\\|<]| (?! ))+)/g);
    return [...hints].map(([, words = ""]) => words.trim().replace(/[.:]$/, "").split(" "));
  });
  const commandsOf = found
    .filter(([name = ""]) => names.includes(name))
    .map((words) => {
      const end = words.findIndex((word, i) => i > 0 && (prose.has(word) || /[.:>]$/.test(word)));
      return words.slice(0, end === -1 ? undefined : end).join(" ");
    });
  return [...new Set(commandsOf)].sort();
}

/** Calls in place of hints in which a message fills in a value, or leaves it to the reader. */
const calls: Readonly<Record<string, string>> = {
  "get * --field *": "get app/json --field user",
  "get * -o FILE": "get app/key -o /FILE",
  "get *": "get app/key",
  "age recipient NAME": "age recipient age/me",
  "allow --revoke *": "allow --revoke /project",
  "config set * *": "config set audit all",
  "history *": "history app/key",
  "key create -o FILE": "key create -o /KEY",
  "key rm *": "key rm recovery",
  "ls *": "ls app",
  "ls */": "ls app/",
  "mv -f * *": "mv -f app/moved app/there",
  "put *": "put app/new",
  "put PATH": "put app/new",
  "rm *": "rm app/removed",
  "rm -r *": "rm -r old",
  "rm -r */": "rm -r older/",
  "token revoke *": "token revoke ci",
  "token rotate NAME": "token rotate app",
  "token rotate --token-file *": "token rotate --token-file /other.token",
  "transit show NAME --ssh": "transit show ssh/me --ssh",
  "trust --bundle roots.pem": "trust --bundle /roots.pem",
  "use add * HOST --oauth URL --client-id ID": "use add app/key a.example --oauth https://a.example/t --client-id b",
  "use login *": "use login app/json",
  "undo *": "undo gone",
  "undo PATH": "undo gone-too",
};

/** Exit codes of calls that cannot succeed here; a command alone, without its arguments, stands for what it does. */
const exits: Readonly<Record<number, readonly string[]>> = {
  2: [
    ...[
      "allow",
      "audit",
      "backup",
      "decrypt",
      "describe",
      "encrypt",
      "get",
      "migrate",
      "otp",
      "put",
      "restore",
      "undo",
    ],
    ...[
      "verify",
      "token create",
      "transit create",
      "transit import",
      "use add",
      "doctor --store URL",
      "export --format json",
    ],
    ...["put --from-file", "put tls/key --from-file key.pem", "import --prefix app .env"], // there is no such file
    ...["doctor --open", "init --force", "key create", "key create -o FILE", "unlock", "unlock --shares"], // ask at a terminal
    ...["key create --keyring", "unlock --keyring", "vault-env", "scan --staged"], // there is no keyring, no port for Vault and no repository
  ],
  4: ["approve", "credential aws cloud/aws", "key rm *", "use login *"],
  5: ["token rotate --token-file *"], // there is no such file
  7: ["init", "transit create age/me --type x25519"],
  12: ["doctor", "doctor --fix"], // the tests' scrypt cost is too low for it
};

/** Hints that are not executed, with the reason; that there are such commands with such flags is checked. */
const notExecuted: readonly (readonly [hint: RegExp, reason: string])[] = [
  [/^(?:agent|keyring|mcp|run|ssh-agent)\b/, "runs a program"],
  [/^(?:serve(?! --help)|up|service)\b/, "starts or installs a server"],
  [/^(?:browse|credentials|inject|review)\b/, "waits for a terminal, a program or a browser"],
  [/^(?:audit (?:checkpoint )?[12]|token (?:1|changes))$/, "is the name of a format, not a hint"],
];

/** Hints after which the others would have no open vault, or no server. */
const last = [
  "token rotate",
  "token rotate --token-file *",
  "lock",
  "unlock",
  "unlock --keyring",
  "unlock --shares",
  "shutdown",
];

describe("the commands that messages of the source advise", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    const paths = ["app/key", "app/moved", "app/removed", "app/db/password", "old/a", "older/a", "gone", "gone-too"];
    for (const path of paths) await mustPut(started, path, "value");
    await mustPut(started, "app/json", '{"user":"u"}');
    for (const call of [
      "rm gone gone-too",
      "token create ci -q",
      "token create app -q",
      "transit create age/me --type x25519",
      "transit create ssh/me --type ed25519",
    ])
      await must({ STRONGROOM_HOME: started.home }, call.split(" "));
  });
  const hints = hintsInSource();
  const executed = hints.filter((hint) => !notExecuted.some(([pattern]) => pattern.test(hint)));

  it("act on the home of the call that names them, executed as printed", async () => {
    const { home } = server();
    const printed = createHints(["--home", home], names);
    const directory = temporaryDirectory();
    expect(executed).to.have.length.above(70);
    const wrong: string[] = [];
    for (const hint of [...executed.filter((each) => !last.includes(each)), ...last]) {
      const [, ...words] = printed(`strongroom ${calls[hint] ?? hint}`).split(" ");
      const args = words.map((word) => word.replace(/^\/(?!.*\/)/, `${directory}/`));
      const { code, stderr } = await strongroom({}, args, "a value");
      const [exit = "0"] = Object.entries(exits).find(([, each]) => each.includes(hint)) ?? [];
      const isWrong = String(code) !== exit || /no server|unknown|Did you mean/.test(stderr);
      if (isWrong) wrong.push(`strongroom ${words.join(" ")}: exit ${code}, not ${exit}: ${stderr}`);
    }
    expect(wrong).to.deep.equal([]);
  });

  it("exist with their flags where they are not executed", async () => {
    for (const hint of hints.filter((each) => !executed.includes(each))) {
      const [name = "", ...rest] = hint.split(" ");
      const { stdout } = await strongroom({ STRONGROOM_HOME: temporaryDirectory() }, [name, "--help"]);
      const known = [...stdout.matchAll(/--?[\w-]+/g)].flat();
      const own = rest.slice(0, rest.includes("--") ? rest.indexOf("--") : undefined);
      for (const flag of own.filter((word) => word.startsWith("-") && word !== "--help"))
        expect(known, hint).to.include(flag.replace(/\*$/, ""));
    }
  });
});
