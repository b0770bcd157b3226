/** Log of a server whose reader has paused: a terminal after Ctrl-S, and a full pipe that no one reads. */

import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { systemCode } from "../../src/errors.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustInit, mustStatus } from "../../tools/rig/test-client.js";
import { canRun, mustRun } from "../support/mounts.js";
import { isMissing } from "../support/needs.js";
import { hasPython, openTerminal } from "../support/pseudo-terminal.js";

type Reader = { readonly descriptor: number; pause(): void; resume(): void; readonly shown: () => string };

/** A pipe that is read after `resume` only. */
async function openPipe(): Promise<Reader> {
  const path = join(temporaryDirectory(), "pipe");
  mustRun("mkfifo", path);
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const descriptor = openSync(path, constants.O_WRONLY);
  const cleared: NodeJS.Timeout[] = [];
  later(() => {
    for (const timer of cleared) clearInterval(timer);
    for (const each of [reader, descriptor]) closeSync(each);
  });
  let shown = "";
  const resume = () => {
    cleared.push(
      setInterval(() => {
        shown += readWaiting(reader);
      }, 20),
    );
  };
  return { descriptor, pause: () => {}, resume, shown: () => shown };
}

function readWaiting(descriptor: number): string {
  const bytes = Buffer.alloc(65_536);
  try {
    return bytes.toString("utf8", 0, readSync(descriptor, bytes));
  } catch (error) {
    expect(systemCode(error)).to.equal("EAGAIN");
    return "";
  }
}

/** Each request is a line of about 150 bytes: more than a pipe and the server together keep. */
async function request(server: ServerProcess, times: number): Promise<void> {
  for (let n = 0; n < times; n++) await mustStatus(server);
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

const readers = [
  ["a paused terminal", openTerminal, hasPython() ? null : "needs Python, which makes the terminal"],
  ["a full pipe", openPipe, canRun("mkfifo", "--version") ? null : "needs mkfifo"],
] as const;

for (const [what, open, missing] of readers) {
  describe(`${what} as the reader of the log`, () => {
    if (isMissing(missing)) return;

    const startPaused = async (...args: string[]) => {
      const reader: Reader = await open();
      const server = await startProcess(["--log-level", "debug", ...args], {}, undefined, reader.descriptor);
      await mustInit(server);
      reader.pause();
      return { reader, server };
    };

    it("a paused reader of the log delays neither requests, nor the idle lock, nor SIGTERM", async () => {
      const { server } = await startPaused("--idle-timeout-ms", "3000");
      await request(server, 1_500);
      await until(async () => (await mustStatus(server))["locked"] === true);
      server.child.kill("SIGTERM");
      expect((await server.ended).code).to.equal(0);
    });

    it("a reader that continues gets the count of dropped lines and the last lines", async () => {
      const { reader, server } = await startPaused();
      await request(server, 1_500);
      reader.resume();
      await until(() => reader.shown().includes("log-lines-dropped"));
      const [, count] = /"event":"log-lines-dropped","count":(\d+)/.exec(reader.shown()) ?? [];
      expect(Number(count)).to.be.within(1, 1_500);
      server.child.kill("SIGTERM");
      await server.ended;
      await until(() => reader.shown().includes('"event":"stopped"'));
    });

    it("a reader that was paused when a stop began gets its last lines", async () => {
      const { reader, server } = await startPaused();
      server.child.kill("SIGTERM");
      await until(() =>
        mustStatus(server).then(
          () => false,
          () => true,
        ),
      );
      reader.resume();
      expect((await server.ended).code).to.equal(0);
      await until(() => reader.shown().includes('"event":"stopped"'));
    });
  });
}
