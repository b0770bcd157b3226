/** Manipulations of an audit log: each is found, and its place is named. */
import { expect } from "chai";
import type { LogHead } from "../../src/audit/format.js";
import { type AuditProblem, judgeCheckpoints, LogVerifier } from "../../src/audit/verify.js";
import { Random, runSeed } from "../support/random.js";
import { isSame, judge, type LogBytes, type ParsedGroup, parseLog, rebuilt, sampleLog } from "./sample-log.js";

/** Short in the normal suite; 10,000 in the long form. */
const manipulations = Number(process.env["STRONGROOM_AUDIT_MANIPULATIONS"] ?? 200);

type Verdict = { readonly problems: readonly AuditProblem[]; readonly head: LogHead | null };

async function verify(log: LogBytes, head: LogHead | null): Promise<Verdict> {
  const verifier = new LogVerifier(head);
  for (const [file, bytes] of log) verifier.add(file, bytes);
  const verified = verifier.end();
  return {
    problems: [...verified.problems, ...(await judgeCheckpoints(verified, judge)).problems],
    head: verified.head,
  };
}

/** `file`: where it was done; 0: nowhere in particular. */
type Done = { readonly log: LogBytes; readonly file: number };
type Manipulation = (log: LogBytes, random: Random) => Done;

/** Manipulations without knowledge of the format. */
const crude: Readonly<Record<string, Manipulation>> = {
  "an edited byte": onFile((bytes, random) => {
    const at = random.below(bytes.length);
    const edited = Buffer.from(bytes);
    edited[at] = (edited[at] ?? 0) ^ (1 + random.below(255));
    return edited;
  }),
  "a removed line": onLines((lines, random) => lines.toSpliced(random.below(lines.length), 1)),
  "a repeated line": onLines((lines, random) => {
    const at = random.below(lines.length);
    return lines.toSpliced(at, 0, lines[at] ?? "");
  }),
  "two lines that are swapped": onLines((lines, random) => {
    const at = random.below(lines.length - 1);
    return lines.toSpliced(at, 2, lines[at + 1] ?? "", lines[at] ?? "");
  }),
  "a cut in the middle": onFile((bytes, random) => {
    const from = random.below(bytes.length - 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + random.below(bytes.length - from - 1))]);
  }),
  "a removed file": (log, random) => {
    const file = anyFile(log, random);
    return { log: new Map([...log].filter(([other]) => other !== file)), file: file === log.size ? 0 : file };
  },
  "two files that are swapped": (log, random) => {
    const file = 1 + random.below(log.size - 1);
    const swapped = new Map(log).set(file, at(log, file + 1)).set(file + 1, at(log, file));
    return { log: swapped, file };
  },
  "a cut end": (log, random) => {
    const bytes = at(log, log.size);
    return { log: new Map(log).set(log.size, bytes.subarray(0, random.below(bytes.length))), file: 0 };
  },
};

/** Manipulations with the program's own code, but without the vault's key. */
const skilled: Readonly<Record<string, Manipulation>> = {
  "a changed record, with the chain computed again": onGroups((groups, random) => {
    const group = random.below(groups.length);
    return editRecord(groups, group);
  }),
  "a changed record, with the chain computed again and no checkpoint after it": onGroups((groups, random) => {
    const group = random.below(groups.length);
    return editRecord(groups, group).filter(({ lines: [first = ""] }, i) => i <= group || !isCheckpoint(first));
  }),
  "a changed record, with the chain computed again and the checkpoints after it under another key": onGroups(
    (groups, random) => {
      const group = random.below(groups.length);
      return editRecord(groups, group).map(({ file, lines }, i) => {
        return {
          file,
          lines: i < group ? lines : lines.map((line) => line.replace(/"key":"A{12}"/, '"key":"BBBBBBBBBBBB"')),
        };
      });
    },
  ),
  "a removed group, with the chain computed again": onGroups((groups, random) => {
    const gone = random.below(groups.length);
    return groups.filter((_, i) => i !== gone);
  }),
  "an end that was cut and written again": onGroups((groups, random) => {
    const kept = groups.slice(0, 1 + random.below(groups.length - 1));
    const file = kept.at(-1)?.file ?? 1;
    const forged = groups
      .slice(0, 1 + random.below(60))
      .map(({ lines }) => ({ file, lines: lines.filter((line) => !isCheckpoint(line)) }));
    return [...kept, ...forged.filter(({ lines }) => lines.length > 0)];
  }),
};

describe(`manipulated audit logs (${manipulations} manipulations, seed ${runSeed})`, function () {
  this.timeout(0);
  let original: LogBytes;
  let head: LogHead | null = null;
  before(async () => {
    original = await sampleLog();
    const { problems, head: end } = await verify(original, null);
    expect(problems).to.deep.equal([]);
    head = end;
  });

  for (const [name, manipulate] of Object.entries({ ...crude, ...skilled })) {
    it(`verify finds ${name}`, async () => {
      const random = new Random(runSeed);
      const rounds = Math.ceil(manipulations / (Object.keys(crude).length + Object.keys(skilled).length));
      for (let round = 0; round < rounds; round++) {
        const { log, file } = manipulate(original, random);
        if (isSame(log, original)) continue;
        const { problems } = await verify(log, head);
        expect(problems, `round ${round}`).to.not.have.lengthOf(0);
        const named = problems.some((problem) => problem.file === `audit-00000${file}.jsonl`);
        expect(file === 0 || named, JSON.stringify([file, problems])).to.equal(true);
      }
    });
  }

  it("checkpoints reveal a chain that was recomputed to the end, without a head", async () => {
    const { header, groups } = parseLog(original);
    const lastCheckpoint = groups.findLastIndex(({ lines: [first = ""] }) => isCheckpoint(first));
    for (let group = 0; group < lastCheckpoint; group += 5) {
      const { problems } = await verify(rebuilt(header, editRecord(groups, group)), null);
      expect(problems.map(({ code }) => code)).to.include("checkpoint");
    }
  });

  it("verify reports at most 1,000 problems for a file whose number is far away", async () => {
    const { problems } = await verify(new Map(original).set(999_999_999_999, at(original, 1)), null);
    expect(problems).to.have.lengthOf(1_000);
  });

  it("a change after the last checkpoint is found only with a head that is kept elsewhere", async () => {
    const { header, groups } = parseLog(original);
    const forged = rebuilt(header, editRecord(groups, groups.length - 1));
    expect((await verify(forged, null)).problems).to.deep.equal([]);
    expect((await verify(forged, head)).problems.map(({ code }) => code)).to.deep.equal(["head"]);
  });

  it("verify reports no problem, wherever a crash cuts the file that is being written", async () => {
    const random = new Random(runSeed);
    const last = at(original, original.size);
    for (let round = 0; round < manipulations / 4; round++) {
      const cut = new Map(original).set(original.size, last.subarray(0, random.below(last.length + 1)));
      expect((await verify(cut, null)).problems).to.deep.equal([]);
    }
  });
});

function onFile(change: (bytes: Buffer, random: Random) => Buffer): Manipulation {
  return (log, random) => {
    const file = anyFile(log, random);
    const bytes = change(at(log, file), random);
    return { log: new Map(log).set(file, bytes), file: endsSooner(bytes, log, file) ? 0 : file };
  };
}

/** Only the head reveals a cut at the end of the last file. */
function endsSooner(bytes: Buffer, log: LogBytes, file: number): boolean {
  return file === log.size && at(log, file).subarray(0, bytes.length).equals(bytes);
}

function onLines(change: (lines: readonly string[], random: Random) => readonly string[]): Manipulation {
  return onFile((bytes, random) =>
    Buffer.from(`${change(bytes.toString().trimEnd().split("\n"), random).join("\n")}\n`),
  );
}

function onGroups(change: (groups: readonly ParsedGroup[], random: Random) => readonly ParsedGroup[]): Manipulation {
  return (log, random) => {
    const { header, groups } = parseLog(log);
    return { log: rebuilt(header, change(groups, random)), file: 0 };
  };
}

function editRecord(groups: readonly ParsedGroup[], group: number): readonly ParsedGroup[] {
  return groups.map(({ file, lines }, i) => {
    return { file, lines: i === group ? lines.map((line) => line.replace("2026-03-01", "2025-03-01")) : lines };
  });
}

function isCheckpoint(line: string): boolean {
  return line.includes('"event":"checkpoint"');
}

function anyFile(log: LogBytes, random: Random): number {
  return 1 + random.below(log.size);
}

function at(log: LogBytes, file: number): Buffer {
  return log.get(file) ?? Buffer.alloc(0);
}
