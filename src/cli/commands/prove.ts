/** `strongroom prove`: flags, passphrase, the challenge, and printing of the evidence. */
import { once } from "node:events";
import { type Command, Option } from "commander";
import type { Challenge } from "../../../prove/canary.js";
import { evidence } from "../../../prove/evidence.js";
import { asHtml, asMarkdown, asText } from "../../../prove/forms.js";
import { prove as proveServer } from "../../../prove/prove.js";
import { exitCodes, type Report } from "../../../prove/report.js";
import { integer } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { engineFor } from "../../engines/engines.js";
import { packageDirectory } from "../../program-files.js";
import { nonEmpty, onlyWith, usageFailure } from "../kit/args/args.js";
import { type StoreFlags, storeSettings, withStore } from "../kit/args/settings-flags.js";
import { withHome } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { phasedBar } from "../kit/output/progress.js";
import { localTime, painter, printJson, say, withHints } from "../kit/output.js";
import { isTyped, type PassphraseSource, withPassphrase, withPassphraseTries } from "../kit/prompts/passphrase.js";
import { checkOffline } from "./check-passphrase.js";

type Form = "json" | "markdown" | "html";

type Flags = PassphraseSource &
  StoreFlags & {
    readonly [F in Form]?: true;
  } & {
    readonly home?: string;
    readonly lock?: true;
    readonly withCanary?: true;
    readonly challenge?: true;
    readonly asAttacker?: true;
    readonly pid?: number;
    readonly dump?: string;
    readonly state?: "unlocked" | "locked";
    readonly header?: string;
  };

export function define(command: Command, io: Io): void {
  withHome(command)
    .description(
      "Checks the security promises on the running server, from outside: decrypts header and secrets with a decoder of " +
        "its own, searches memory for known keys, and tries every 32 bytes of memory on the header, as an attacker " +
        "would. While unlocked, exactly one place must open the vault; while locked, none. The server is paused for a " +
        "moment while its memory is copied. Linux only, except with --dump. As root it never asks for a passphrase.",
    )
    .option("--lock", "also lock the vault, look, and unlock it again")
    .option("--with-canary", "also put, read, restore and delete a random value, and search for it")
    .option(
      "--challenge",
      "also store a value whose SHA-256 is shown, and wait 10 minutes for your own search of memory",
    )
    .addOption(new Option("--as-attacker", "use no passphrase").conflicts(["passphraseFile", "passphraseFd", "lock"]))
    .addOption(
      new Option("--pid <number>", "look at this process instead of the home's server").argParser(integer(1, 2 ** 22)),
    )
    .addOption(
      new Option("--dump <file>", "look at a core dump or raw bytes instead")
        .argParser(nonEmpty)
        .conflicts(["lock", "withCanary", "challenge", "pid"]),
    )
    .addOption(
      new Option("--state <state>", "the vault's state when the dump was made").choices([
        "unlocked",
        "locked",
      ] as const),
    )
    .addOption(new Option("--header <file>", "the vault's header; by default the home's").argParser(nonEmpty))
    .addOption(new Option("--json", "print one JSON object").conflicts(["markdown", "html"]))
    .addOption(new Option("--markdown", "print Markdown").conflicts("html"))
    .option("--html", "print one HTML file, without scripts");
  withPassphrase(withStore(onlyWith(command, "state", "dump"))).action((flags: Flags) => prove(io, flags, command));
}

async function prove(io: Io, flags: Flags, command: Command): Promise<void> {
  const passphrase = await passphraseFor(io, flags);
  if (flags.lock && passphrase === null)
    throw usageFailure(command, "--lock needs the passphrase, to unlock the vault again");
  const home = readOneSetting("home", flags.home, io.env);
  const { store, storePasswordFile } = await storeSettings(io, home, flags);
  const place = store ?? home;
  const { database } = await engineFor(place);
  const queries = (await database?.openQueries(place, storePasswordFile)) ?? null;
  const bar = phasedBar<string>(io, (phase) => (phase.startsWith("memory") ? "bytes" : "items"));
  const waitForSearch = (challenge: Challenge) => {
    bar.end();
    return showChallenge(io, challenge);
  };
  try {
    const report = await proveServer({
      home,
      pid: flags.pid ?? null,
      dump: flags.dump ?? null,
      state: flags.state ?? null,
      header: flags.header ?? null,
      query: queries?.query ?? null,
      passphrase,
      lock: flags.lock === true,
      canary: flags.withCanary === true,
      challenge: flags.challenge ? waitForSearch : null,
      program: packageDirectory,
      environment: io.env,
      onProgress: bar.show,
    });
    bar.end();
    print(io, report, flags);
    io.exitCode = exitCodes[report.verdict];
  } finally {
    bar.end();
    passphrase?.fill(0);
    await queries?.close();
  }
}

/** Root could read every passphrase that is typed into its processes: it has to be given one on purpose. */
async function passphraseFor(io: Io, flags: Flags) {
  const isGiven = flags.passphraseFile !== undefined || flags.passphraseFd !== undefined;
  if (flags.asAttacker || (!isGiven && io.uid === 0)) return null;
  return await withPassphraseTries(io, flags, "Passphrase of the vault: ", async (passphrase) => {
    if (isTyped(flags) && flags.dump === undefined && flags.header === undefined)
      await checkOffline(io, flags.home, passphrase);
    return passphrase.slice();
  });
}

const challengeMs = 10 * 60_000;

/** Shows how to search, waits for Enter or the end of the time, and shows what was to be found. @throws CommandFailure aborted */
async function showChallenge(io: Io, { pid, control, value, sha256 }: Challenge): Promise<void> {
  const until = localTime(new Date(io.clock.now() + challengeMs));
  say(
    io,
    [
      `A random value was stored in the vault and read back. Process ${pid} is the server, which must not hold it. ` +
        `Process ${control} is the control, which holds it. The value's SHA-256 is`,
      `  ${sha256}`,
      `Dump and search both until ${until}, for example with gdb's gcore:`,
      `  gcore -a -o server ${pid}`,
      `  gcore -a -o control ${control}`,
      "Then press Enter to see the value.\n",
    ].join("\n"),
  );
  await enterOrTimeout(io);
  say(
    io,
    [
      "The value was",
      `  ${value}`,
      "This prints the SHA-256 above:",
      `  printf %s ${value} | sha256sum`,
      "This must print 1 or more, since the control holds it:",
      `  strings -n 8 control.${control} | grep -c ${value}`,
      "This must print 0:",
      `  strings -n 8 server.${pid} | grep -c ${value}\n`,
    ].join("\n"),
  );
}

/** The end of the input is no Enter. */
async function enterOrTimeout(io: Io): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  try {
    await Promise.race([
      once(io.stdin, "data", { signal }),
      io.sleep(challengeMs, signal),
      once(io.events, "SIGINT", { signal }).then(() => {
        throw new CommandFailure("aborted", "the challenge was interrupted: its value was deleted");
      }),
    ]);
  } finally {
    ended.abort();
    io.stdin.pause();
  }
}

/** Columns for output that goes to no terminal. */
const usualColumns = 80;

function print(io: Io, found: Report, { json, markdown, html }: Flags): void {
  const report = { ...found, reason: found.reason && withHints(io, found.reason) };
  const page = evidence(report);
  if (json) printJson(io, report);
  else if (html) io.stdout.write(asHtml(page));
  else io.stdout.write(markdown ? asMarkdown(page) : asText(page, painter(io), io.stdout.columns || usualColumns));
}
