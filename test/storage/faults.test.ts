/** Faults of the disk, at every operation: the answer is clear, the value is the old or the new one, nothing acknowledged is lost. */
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../support/clean-up.js";
import {
  type Answer,
  connectRaw,
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../support/client.js";
import { type FailingFiles, failingFiles } from "../support/failing-files.js";
import { passphrase, startTestServer, type TestServer } from "../support/server.js";

const another = "another passphrase";

async function startFailing(): Promise<{ server: TestServer; faults: FailingFiles }> {
  const faults = failingFiles();
  const server = await startTestServer({ files: faults.files });
  await mustInit(server);
  await mustPut(server, "a/b", "old");
  return { server, faults };
}

function isClear({ status, json }: Answer): void {
  expect(`${status} ${json["code"] ?? "ok"}`).to.be.oneOf(["200 ok", "503 UNAVAILABLE"]);
}

describe("every file operation that can fail", () => {
  for (const code of ["ENOSPC", "EIO", "EMFILE", "EACCES"]) {
    it(`with ${code}: a put leaves the old or the new value, and the next put works`, async () => {
      const { server, faults } = await startFailing();
      let succeeded = 0;
      for (let k = 1; k <= 40; k++) {
        faults.failOnce(k, code);
        const answer = await send(server, { method: "PUT", path: `/v1/secrets/a/b`, body: { value: `new ${k}` } });
        faults.mend();
        isClear(answer);
        if (answer.status === 200) succeeded++;
        const { value } = await mustGet(server, "a/b");
        if (answer.status === 200) expect(value).to.equal(`new ${k}`);
        else expect(value).to.be.oneOf(["old", `new ${k}`]);
        await mustStatus(server);
        await mustPut(server, "a/b", "old");
      }
      expect(succeeded).to.be.within(20, 36);
      expect(readdirSync(join(server.home, "vault", "gen-1", "secrets", "a"))).to.deep.equal(["b.sealed"]);
    });

    it(`with ${code}: a put into new directories, and a delete, are whole or not at all`, async () => {
      const { server, faults } = await startFailing();
      for (let k = 1; k <= 20; k++) {
        faults.failOnce(k, code);
        isClear(await send(server, { method: "PUT", path: `/v1/secrets/n${k}/e/w`, body: { value: "v" } }));
        faults.failOnce(k, code);
        const { status } = await send(server, { method: "DELETE", path: `/v1/secrets/n${k}/e/w` });
        faults.mend();
        expect(status).to.be.oneOf([200, 404, 503]);
        if (status === 503) {
          const again = await send(server, { method: "DELETE", path: `/v1/secrets/n${k}/e/w` });
          expect(again.status, "what was not certainly deleted can be deleted again").to.be.oneOf([200, 404]);
        }
      }
      expect((await mustList(server)).map(({ path }) => path)).to.deep.equal(["a/b"]);
    });
  }

  it("for good from any moment of a forced init: what is acknowledged afterwards is there after a restart", async () => {
    for (let k = 1; k <= 24; k++) {
      const { server, faults } = await startFailing();
      faults.failFrom(k, "EIO");
      const init = await send(server, { method: "POST", path: "/v1/init", body: { passphrase: another, force: true } });
      faults.mend();
      isClear(init);
      const put = await send(server, { method: "PUT", path: "/v1/secrets/later", body: { value: "later" } });
      isClear(put);
      await server.stop();
      const again = await startTestServer({ home: server.home });
      if (put.status === 503) continue; // the switch is uncertain: nothing more was acknowledged
      await mustUnlock(again, init.status === 200 ? another : passphrase);
      expect((await mustGet(again, "later"))["value"], `operation ${k}`).to.equal("later");
      await again.stop();
    }
  });
});

describe("what is not ours", () => {
  it("a link in the place of a directory is not followed by a put", async () => {
    const { server } = await startFailing();
    const outside = temporaryDirectory();
    symlinkSync(outside, join(server.home, "vault", "gen-1", "secrets", "linked"));
    mkdirSync(join(outside, "c"));
    for (const path of ["linked/b", "linked/c/d"]) {
      const put = { method: "PUT", path: `/v1/secrets/${path}`, body: { value: "v" } };
      mustRefuse(await send(server, put), 503, "UNAVAILABLE");
    }
    expect(readdirSync(outside)).to.deep.equal(["c"]);
  });

  it("links, foreign files and unreadable names are left alone and not listed; temp files of a crash are removed", async () => {
    const { server } = await startFailing();
    await server.stop();
    const secrets = join(server.home, "vault", "gen-1", "secrets");
    writeFileSync(join(secrets, "notes.txt"), "mine");
    writeFileSync(join(secrets, "Upper.sealed"), "not our spelling");
    symlinkSync("/etc/hostname", join(secrets, "link.sealed"));
    for (const directory of [secrets, join(secrets, ".."), join(secrets, "..", "..")]) {
      writeFileSync(join(directory, ".tmp-0123456789abcdef"), "half");
    }
    mkdirSync(join(secrets, "empty", "nested"), { recursive: true });
    const again = await startTestServer({ home: server.home });
    expect(again.logged()).to.match(/"event":"foreign-files","count":3/);
    expect((await mustStatus(again))["secretCount"]).to.equal(1);
    expect(readdirSync(secrets).sort()).to.deep.equal(["Upper.sealed", "a", "link.sealed", "notes.txt"]);
    expect(readdirSync(join(secrets, "..", ".."))).not.to.include(".tmp-0123456789abcdef");
    expect(readdirSync(join(secrets, ".."))).not.to.include(".tmp-0123456789abcdef");
  });

  it("a lost pointer to a vault with secrets stops the start instead of hiding them", async () => {
    const { server } = await startFailing();
    await server.stop();
    renameSync(join(server.home, "vault", "current"), join(server.home, "vault", "mislaid"));
    const outcome = await startTestServer({ home: server.home }).catch((error: Error) => error.message);
    expect(String(outcome)).to.contain(join(server.home, "vault", "current"));
  });
});

describe("an init that is still on its way when the server stops", () => {
  it("replaces nothing", async () => {
    const { server } = await startFailing();
    const socket = connectRaw(server);
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    const body = JSON.stringify({ passphrase: another });
    const head = `POST /v1/init HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    let answer = "";
    socket.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1");
    });
    mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
    await new Promise((resolve) => setTimeout(resolve, 200));
    socket.write(body.slice(5));
    await server.stopped;
    expect(answer).not.to.match(/HTTP\/1\.1 200/);
    expect(existsSync(join(server.home, "vault", "gen-2"))).to.equal(false);
    const again = await startTestServer({ home: server.home });
    await mustUnlock(again);
    expect((await mustGet(again, "a/b"))["value"]).to.equal("old");
  });
});
