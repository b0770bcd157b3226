/** The audit log's writer on disks that fail, after crashes, and over many files. */
import { readdirSync, truncateSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { auditFileName } from "../../src/audit/format.js";
import { readRecords } from "../../src/audit/reader.js";
import { judgeCheckpoints, verifyLog } from "../../src/audit/verify.js";
import { OpenFile, systemFiles } from "../../src/files/durable.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { type Fault, failingFiles, faults } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";
import { Random, runSeed } from "../support/random.js";
import { judge, newWriter, readLog, record, sampleLog, sign, writeLog } from "./sample-log.js";

/** Returns all records, parsed; the log must be without problems. */
async function mustVerify(directory: string): Promise<Record<string, unknown>[]> {
  const verified = await verifyLog(directory);
  const { problems } = await judgeCheckpoints(verified, judge);
  expect([...verified.problems, ...problems]).to.deep.equal([]);
  const lines = [...readLog(directory).values()].flatMap((bytes) => bytes.toString().trimEnd().split("\n"));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ event }) => event !== undefined);
}

const listPaths = (records: readonly Record<string, unknown>[]) =>
  records.filter(({ event }) => event === "get").map(({ path }) => path);

/** Writes a log while the k-th file operation fails; returns false when there were fewer. */
async function survivesFailure(k: number, fault: Fault): Promise<boolean> {
  const { files, failOnce, repair } = failingFiles();
  const { writer, directory } = newWriter({ files, limits: { maxFileBytes: 2_000 } });
  failOnce(k, fault);
  for (let n = 0; n < 20; n++) {
    writer.add(record(n));
    if (n % 5 === 0) await writer.flush();
    if (n % 10 === 0) writer.checkpoint("time");
  }
  await writer.flush();
  await writer.flush();
  const occurred = repair();
  await writer.close();
  expect(listPaths(await mustVerify(directory))).to.have.lengthOf(20);
  return occurred;
}

describe("the audit log's writer", () => {
  it("the writer writes records 50 ms after the first of them, in one group", async () => {
    const clock = new FakeClock();
    const { writer, directory } = newWriter({ clock });
    for (let n = 0; n < 3; n++) writer.add(record(n));
    clock.advance(49);
    expect(writer.head).to.equal(null);
    clock.advance(1);
    await writer.flush();
    expect(writer.head?.seq).to.equal(3);
    expect(await mustVerify(directory)).to.have.lengthOf(3);
    expect(readLog(directory).get(1)?.toString().split("\n")).to.have.lengthOf(6);
  });

  it("the writer makes a checkpoint a minute after a record, and after 1,000 of them", async () => {
    const clock = new FakeClock();
    const { writer, directory } = newWriter({ clock });
    writer.add(record(0));
    clock.advance(60_000);
    await writer.flush();
    for (let n = 1; n <= 1_000; n++) writer.add(record(n));
    await writer.flush();
    clock.advance(600_000);
    await writer.flush();
    const checkpoints = (await mustVerify(directory)).filter(({ event }) => event === "checkpoint");
    expect(checkpoints.map(({ seq, reason }) => [seq, reason])).to.deep.equal([
      [2, "time"],
      [1003, "records"],
    ]);
  });

  it("the writer loses records that have no room on a full disk, and says how many in one gap record", async () => {
    const clock = new FakeClock();
    const { files, fail, repair } = failingFiles();
    const { writer, directory, logged } = newWriter({ clock, files, limits: { maxWaiting: 100 } });
    writer.add(record(0));
    await writer.flush();
    fail("writeFile", "ENOSPC");
    for (let second = 0; second < 60; second++) {
      for (let n = 0; n < 10; n++) writer.add(record(1 + second * 10 + n));
      clock.advance(1_000);
      await writer.flush();
      expect(writer.isFailing).to.equal(true);
    }
    repair();
    clock.advance(1_000);
    await writer.flush();
    expect(writer.isFailing).to.equal(false);
    writer.add(record(601));
    await writer.close();
    const records = await mustVerify(directory);
    const gaps = records.filter(({ event }) => event === "gap");
    const kept = listPaths(records);
    expect(gaps.map(({ count }) => count)).to.deep.equal([602 - kept.length]);
    expect(writer.losses).to.deep.equal({ gaps: 1, records: 602 - kept.length });
    expect(kept.length).to.be.within(100, 102);
    expect(kept.at(-1)).to.equal("app/601");
    expect(logged().match(/"audit-failing"/g)).to.have.lengthOf(1);
  });

  for (const fault of faults) {
    it(`the writer loses nothing when any single step of the disk fails with ${fault}`, async () => {
      for (let k = 1; await survivesFailure(k, fault); k++);
    });
  }

  it("the writer keeps 16 files, and a log of which the oldest are removed has no problem", async () => {
    const { writer, directory } = newWriter({ limits: { maxFileBytes: 500 } });
    for (let n = 0; n < 100; n++) {
      writer.add(record(n));
      await writer.flush();
    }
    await writer.close();
    const files = [...readLog(directory).keys()];
    expect(files).to.have.lengthOf(16);
    expect(files[0]).to.be.above(1);
    await mustVerify(directory);
  });

  it("the writer continues when an old file cannot be removed", async () => {
    const { files, fail } = failingFiles();
    const { writer, directory, logged } = newWriter({ files, limits: { maxFileBytes: 500 } });
    fail("unlink", "EACCES");
    for (let n = 0; n < 100; n++) {
      writer.add(record(n));
      await writer.flush();
    }
    await writer.close();
    expect(listPaths(await mustVerify(directory))).to.have.lengthOf(100);
    expect(logged()).to.equal("");
  });

  it("the writer ends a run, and makes its checkpoint, while each write finds another record", async () => {
    const files = {
      ...systemFiles,
      open: async (...options: Parameters<typeof systemFiles.open>) => {
        const handle = await systemFiles.open(...options);
        const writeFile = (bytes: Uint8Array) => {
          for (let n = 0; n < 500; n++) writer.add(record(n));
          return OpenFile.prototype.writeFile.call(handle, bytes);
        };
        return Object.assign(handle, { writeFile });
      },
    };
    const { writer, directory } = newWriter({ files });
    writer.add(record(0));
    for (let n = 0; n < 4; n++) await writer.flush();
    const checkpoints = (await mustVerify(directory)).filter(({ event }) => event === "checkpoint");
    expect(checkpoints.map(({ reason }) => reason)).to.include("records");
  });

  it("the writer reports a record that comes after its end", async () => {
    const { writer, directory, logged } = newWriter();
    writer.add(record(0));
    await writer.close();
    writer.add(record(1));
    await writer.flush();
    expect(await mustVerify(directory)).to.have.lengthOf(1);
    expect(logged()).to.include('"audit-lost"');
  });

  it("the writer begins each file after a checkpoint of the one before", async () => {
    const { writer, directory } = newWriter({ limits: { maxFileBytes: 3_000 } });
    for (let n = 0; n < 60; n++) {
      writer.add(record(n));
      await writer.flush();
    }
    await writer.close();
    const files = [...readLog(directory).values()].slice(0, -1);
    expect(files).to.not.have.lengthOf(0);
    for (const bytes of files) expect(bytes.toString().trimEnd().split("\n").at(-2)).to.include('"reason":"file"');
  });

  it("the last checkpoint's text is returned for the lock, and written once it is signed", async () => {
    const { files, fail, repair } = failingFiles();
    const { writer, directory } = newWriter({ files });
    writer.add(record(0));
    await writer.flush();
    fail("writeFile", "EIO");
    writer.add(record(1));
    const last = writer.lastCheckpoint();
    expect(writer.lastCheckpoint()).to.equal(null);
    const flushed = writer.flush();
    last?.end(await sign(last.text));
    await flushed;
    repair();
    await writer.close();
    expect((await mustVerify(directory)).map(({ event }) => event)).to.deep.equal(["get", "get", "checkpoint"]);
  });

  it("the writer continues without a checkpoint when the vault was locked in between", async () => {
    const { writer, directory } = newWriter();
    writer.setSigner(() => Promise.reject(new Error("locked")));
    for (let n = 0; n < 2_500; n++) writer.add(record(n));
    writer.checkpoint("time");
    await writer.close();
    expect(await mustVerify(directory)).to.have.lengthOf(2_500);
  });

  it("the writer continues at the last whole group, wherever a crash has cut the log", async () => {
    const original = await sampleLog();
    const random = new Random(runSeed);
    const last = original.get(original.size) ?? Buffer.alloc(0);
    const ends = [0, 1, 60, ...Array.from({ length: 40 }, () => random.below(last.length + 1))];
    for (const end of ends) {
      const directory = temporaryDirectory();
      writeLog(directory, new Map(original).set(original.size, last.subarray(0, end)));
      const { writer } = newWriter({ directory });
      writer.add(record(1000));
      await writer.close();
      expect(listPaths(await mustVerify(directory)).at(-1), `cut at ${end}`).to.equal("app/1000");
      expect(readdirSync(directory)).to.have.lengthOf(original.size);
    }
  });

  it("the writer cuts what a power cut has left without content", async () => {
    const original = await sampleLog();
    const directory = temporaryDirectory();
    const last = Buffer.from(original.get(original.size) ?? []);
    last.fill(0, last.length - 900, last.length - 300);
    writeLog(directory, new Map(original).set(original.size, last));
    const { writer, logged } = newWriter({ directory });
    writer.add(record(1000));
    await writer.close();
    expect(listPaths(await mustVerify(directory)).at(-1)).to.equal("app/1000");
    expect(logged()).to.include('"audit-cut"');
  });

  it("the writer leaves a file that it cannot continue as it is, and begins another", async () => {
    const directory = temporaryDirectory();
    const foreign = "not a line of ours\n".repeat(100);
    writeFileSync(join(directory, "audit-000001.jsonl"), foreign);
    const { writer } = newWriter({ directory });
    writer.add(record(0));
    await writer.close();
    const log = readLog(directory);
    expect([log.get(1)?.toString(), log.size]).to.deep.equal([foreign, 2]);
    expect((await verifyLog(directory)).problems).to.not.have.lengthOf(0);
  });

  it("the writer continues the log beside a file whose number is far away, which verify names", async () => {
    for (const [stray, count] of [
      [999_999_999_999, 3],
      [500, 18],
    ] as const) {
      const { writer, directory } = newWriter({ limits: { maxFileBytes: 500 } });
      for (let n = 0; n < count; n++) {
        writer.add(record(n));
        await writer.flush();
      }
      await writer.close();
      const before = [...readLog(directory).keys()];
      const { seq: last = 0 } = (await verifyLog(directory)).head ?? {};
      writeLog(directory, new Map([[stray, readLog(directory).get(before[0] ?? 1) ?? Buffer.alloc(0)]]));
      const next = newWriter({ directory });
      next.writer.add(record(1000));
      await next.writer.close();
      expect(readdirSync(directory)).to.have.lengthOf(before.length + 1);
      const { problems, head } = await verifyLog(directory);
      expect(problems.map(({ code, file }) => [code, file])).to.deep.equal([["header", auditFileName(stray)]]);
      expect(head?.seq).to.equal(last + 1);
      const records = await readRecords(systemFiles, directory, 0, 1000);
      expect(records.at(-1)?.["path"]).to.equal("app/1000");
    }
  });

  it("the writer hides no cut that was made under a running server", async () => {
    const { writer, directory } = newWriter();
    for (let n = 0; n < 10; n++) {
      writer.add(record(n));
      await writer.flush();
    }
    truncateSync(join(directory, "audit-000001.jsonl"), 600);
    writer.add(record(10));
    await writer.close();
    expect((await verifyLog(directory)).problems).to.not.have.lengthOf(0);
  });

  it("the writer reports lost records where a directory stands in its file's place", async () => {
    const directory = temporaryDirectory();
    await mkdir(join(directory, "audit-000001.jsonl"));
    const { writer, logged } = newWriter({ directory });
    writer.add(record(0));
    await writer.close();
    expect(logged()).to.include('"audit-failing"').and.to.include('"audit-lost"');
  });
});
