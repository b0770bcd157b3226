/** Requests of a web page in a real browser: Debian's chromium, headless; skipped where it is missing. */
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";
import { mustSucceed, send } from "../../tools/rig/test-client.js";
import { FakeClock } from "../support/manual-clock.js";

const hasChromium = spawnSync("chromium", ["--version"], { stdio: "ignore" }).status === 0;

/** Sends 15 no-cors requests and loads 15 images, none with `Origin`, then requests `/done`. */
function page(target: string): string {
  return `<!doctype html><script type="module">
    for (let i = 0; i < 15; i++) {
      await fetch("${target}", { mode: "no-cors" }).catch(() => {});
      const image = new Image();
      image.src = "${target}?" + i;
      await image.decode().catch(() => {});
    }
    await fetch("/done");
  </script>`;
}

describe("chromium", () => {
  it("a web page of another origin cannot lock the owner out with no-cors requests", async function () {
    needs(this, hasChromium, "chromium");
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    await visit(page(`${server.url}/v1/secrets`));
    expect(server.logged()).to.match(/"status":400/);
    clock.advance(60_000);
    expect(server.logged()).not.to.contain("authentication-failures");
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
  });
});

/** Serves the page on a loopback port, opens it, and waits until it has asked for `/done`. */
async function visit(html: string): Promise<void> {
  let finish = () => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const site = createServer((req, res) => {
    res.writeHead(200, { "content-type": "text/html" }).end(html);
    if (req.url === "/done") finish();
  }).listen(0, "127.0.0.1");
  later(() => void site.close());
  await new Promise((resolve) => site.once("listening", resolve));
  const { port } = site.address() as AddressInfo;
  const profile = `--user-data-dir=${temporaryDirectory()}`;
  const flags = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--ignore-certificate-errors",
  ];
  const browser = spawn("chromium", [...flags, profile, "--remote-debugging-port=0", `http://127.0.0.1:${port}/`], {
    stdio: "ignore",
    detached: true,
    env: environment({}),
  });
  const closed = new Promise((resolve) => browser.once("close", resolve));
  await Promise.race([done, closed.then(() => Promise.reject(new Error("chromium ended")))]);
  process.kill(-Number(browser.pid), "SIGKILL");
  await closed;
}
