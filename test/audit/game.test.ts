/** docs/reference/security.md, the attacker's game: edits of a stopped server's log, with all hashes made right, and then an unlock. */
import { expect } from "chai";
import { judgeCheckpoints, verifyLog } from "../../src/audit/verify.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { Random, runSeed } from "../support/random.js";
import {
  isSame,
  judge,
  type LogBytes,
  newWriter,
  type ParsedGroup,
  parseLog,
  readLog,
  rebuilt,
  record,
  sign,
  writeLog,
} from "./sample-log.js";

/** Short in the normal suite; 10,000 in the long form. */
const rounds = Number(process.env["STRONGROOM_AUDIT_GAME"] ?? 80);

/** Runs a server's log from an unlock to a lock, with a checkpoint now and then. */
async function runServer(directory: string, records: number, reason: "init" | "unlock" = "unlock"): Promise<void> {
  const { writer } = newWriter({ directory });
  writer.add(record(0, "unlock"));
  writer.checkpoint(reason);
  for (let n = 1; n < records; n++) {
    writer.add(record(n));
    if (n % 5 === 4) await writer.flush();
    if (n % 16 === 15) writer.checkpoint("time");
  }
  await writer.flush();
  const last = writer.lastCheckpoint();
  last?.end(await sign(last.text));
  await writer.close();
}

async function verdictOn(directory: string) {
  const verified = await verifyLog(directory);
  const { problems, uncovered } = await judgeCheckpoints(verified, judge);
  return { problems: [...verified.problems, ...problems], uncovered };
}

const isCheckpoint = ({ lines: [line = ""] }: ParsedGroup) => line.includes('"event":"checkpoint"');

/** Edits of the records by someone who has no key. */
const edits: Readonly<Record<string, (groups: readonly ParsedGroup[], at: number) => readonly ParsedGroup[]>> = {
  "a changed record": (groups, at) =>
    groups.map(({ file, lines }, i) => ({
      file,
      lines: i === at ? lines.map((line) => line.replace('"token":"root"', '"token":"ci"')) : lines,
    })),
  "a removed group": (groups, at) => groups.toSpliced(at, 1),
  "a removed record": (groups, at) =>
    groups.flatMap(({ file, lines }, i) => {
      const left = i === at ? lines.slice(1) : lines;
      return left.length === 0 ? [] : [{ file, lines: left }];
    }),
  "an added group": (groups, at) => groups.toSpliced(at, 0, { file: groups[at]?.file ?? 1, lines: [record(7).trim()] }),
  "two groups that are swapped": (groups, at) => {
    const [one, other] = [groups[at], groups[at + 1]];
    return one && other ? groups.toSpliced(at, 2, other, one) : groups;
  },
};

const renamed = (group: ParsedGroup, key: string) => ({
  ...group,
  lines: group.lines.map((line) => line.replace(/"key":"[^"]*"/, `"key":"${key}"`)),
});
const earlierForm = (group: ParsedGroup) => ({
  ...group,
  lines: group.lines.map((line) => line.replace(/"from":\d+,/, "")),
});

/** Edits of the checkpoints from a group on. */
const covers: Readonly<Record<string, (group: ParsedGroup, random: Random) => readonly ParsedGroup[]>> = {
  "are left": (group) => [group],
  "get another key's name": (group) => [renamed(group, "BBBBBBBBBBBB")],
  "get another key's name and an earlier form": (group) => [earlierForm(renamed(group, "BBBBBBBBBBBB"))],
  "are made bridges": (group) => [
    { ...group, lines: group.lines.map((line) => line.replace(/"reason":"\w+"/, '"reason":"key"')) },
  ],
  "are removed": () => [],
  "are removed here and there": (group, random) => (random.below(2) === 0 ? [] : [group]),
};

describe(`the attacker's game with an audit log (${rounds} rounds, seed ${runSeed})`, function () {
  this.timeout(0);
  let original: LogBytes;

  before(async () => {
    const directory = temporaryDirectory();
    await runServer(directory, 60, "init");
    await runServer(directory, 40);
    await runServer(directory, 70);
    original = readLog(directory);
    expect(await verdictOn(directory)).to.deep.equal({ problems: [], uncovered: [] });
  });

  it("each change before a checkpoint is found, although the server signs the log again", async () => {
    const random = new Random(runSeed);
    const { header, groups } = parseLog(original);
    const last = groups.findLastIndex(isCheckpoint);
    for (let round = 0; round < rounds; round++) {
      const [edit, change] = pickEntry(edits, random);
      const [cover, treat] = pickEntry(covers, random);
      const at = random.below(last);
      const changed = change(groups, at);
      const forged = changed.flatMap((group, i) => (i >= at && isCheckpoint(group) ? treat(group, random) : [group]));
      const log = rebuilt(header, forged);
      if (isSame(log, original)) continue;
      const directory = temporaryDirectory();
      writeLog(directory, log);
      await runServer(directory, 20);
      const { problems, uncovered } = await verdictOn(directory);
      const isFound = problems.length + uncovered.length > 0;
      expect(isFound, `round ${round}: ${edit} at ${at}, checkpoints that ${cover}`).to.equal(true);
    }
  });

  it("a log that is cut after a checkpoint is found only with a head that is kept elsewhere", async () => {
    const { header, groups } = parseLog(original);
    const intact = temporaryDirectory();
    writeLog(intact, original);
    const { head } = await verifyLog(intact);
    const cut = groups.slice(0, 1 + groups.findIndex((group, i) => i > 5 && isCheckpoint(group)));
    const directory = temporaryDirectory();
    writeLog(directory, rebuilt(header, cut));
    await runServer(directory, 20);
    expect(await verdictOn(directory)).to.deep.equal({ problems: [], uncovered: [] });
    expect((await verifyLog(directory, head)).problems.map(({ code }) => code)).to.include("head");
  });

  it("a change that the server found stays recorded when the files are restored", async () => {
    const { header, groups } = parseLog(original);
    const directory = temporaryDirectory();
    writeLog(
      directory,
      rebuilt(
        header,
        groups.map((group) => renamed(group, "BBBBBBBBBBBB")),
      ),
    );
    await runServer(directory, 20);
    const { problems } = await verdictOn(directory);
    expect(problems.map(({ message }) => message).join()).to.include(
      "the server says that the log before it was changed",
    );
  });

  it("verify lists the records that a crash left without a checkpoint, but reports no problem", async () => {
    const directory = temporaryDirectory();
    await runServer(directory, 20, "init");
    const { writer } = newWriter({ directory });
    for (let n = 0; n < 3; n++) writer.add(record(n));
    await writer.close();
    const { seq = 0 } = (await verifyLog(directory)).head ?? {};
    await runServer(directory, 20);
    const crashed = { first: seq - 2, last: seq };
    expect(await verdictOn(directory)).to.deep.equal({ problems: [], uncovered: [crashed] });
  });
});

function pickEntry<T>(choices: Readonly<Record<string, T>>, random: Random): readonly [name: string, choice: T] {
  const [first, ...others] = Object.entries(choices);
  if (first === undefined) throw new Error("there is no choice");
  return random.pick([first, ...others]);
}
