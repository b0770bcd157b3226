/** The review page in a real browser: Debian's chromium, driven by puppeteer, judged by axe; skipped where it is missing. */
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer-core";
import { chromium, openPage, startBrowser, stormed, waitForState } from "../../tools/rig/browser.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { passphrase } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut, mustStatus, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Whether the chart's labels are as high as on a wide page, and none covers another. */
const chartIsLegible = `(() => {
  const boxes = [...document.querySelectorAll("#chart text")].map((label) => label.getBoundingClientRect());
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return boxes.every((a, i) => a.height > 12 && !boxes.slice(0, i).some((b) => meets(a, b)));
})()`;

describe("chromium", function () {
  this.timeout(300_000);
  before(function () {
    needs(this, existsSync(chromium), "chromium");
  });
  const server = shared(async () => {
    const started = await startProcess([], { STRONGROOM_SCRYPT_LOG_N: "16" });
    await mustInit(started);
    await mustPut(started, "app/a", "a value");
    await mustCreateToken(started, { name: "ci", paths: ["app/\u202e\u3164x"] });
    return started;
  });
  const browser = shared(startBrowser);

  it("the review page shows the server at work during a storm, without an error or a finding of axe", async () => {
    const { page, problems } = await openPage(browser(), await reviewUrl(server()));
    await waitForState(page, /^Connected/);
    expect(await page.evaluate("location.hash")).to.equal("");
    expect(await innerText(page, "#holders")).to.match(/^0\s+keys in the front end\s+1\s+key in the key worker/);
    expect(await innerText(page, "#slots")).to.contain("scrypt, N = 2^16");
    expect(await innerText(page, "#tokens")).to.contain("app/\\u{202e}\\u{3164}x");
    expect(await innerText(page, "#audit-verdict")).to.match(
      /has checked all \d+ records from 1 on\. The chain is unbroken/,
    );
    await stormed(page);
    expect(await innerText(page, "#storm-result")).to.match(
      /^16 unlocks took .* s\. \d+ gets beside them, p99: get .* ms, bare/,
    );
    expect(await innerText(page, "#last-prove")).to.match(/^Not proven yet/);
    expect(await innerText(page, "#slots")).to.match(/\d{4}, (?:now|\d+ minutes? ago)/);
    await page.setViewport({ width: 360, height: 740 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).to.be.at.most(360);
    await page.waitForFunction(chartIsLegible, { timeout: 60_000 }); // it is drawn again for the width
    expect(problems).to.deep.equal([]);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      expect(await axeFindings(page), scheme).to.deep.equal([]);
    }
    await page.close();
  });

  it("the review page takes a code once, and its token ends with the page", async () => {
    const url = await reviewUrl(server());
    const { page, token } = await openPage(browser(), url);
    await waitForState(page, /^Connected/);
    const again = await openPage(browser(), url);
    await waitForState(again.page, /wrong, used or expired/);
    await again.page.close();
    expect(await statusWith(server(), token())).to.equal(200);
    await page.close();
    while ((await statusWith(server(), token())) !== 401) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  it("the review page locks the vault by keyboard, which ends its token", async () => {
    const { page, token } = await openPage(browser(), await reviewUrl(server()));
    await waitForState(page, /^Connected/);
    await page.focus("#lock");
    await page.keyboard.press("Enter");
    await waitForState(page, /^The vault is locked/);
    expect(await innerText(page, "#holders")).to.match(/^0\s+keys in the front end\s+0\s+keys in the key worker/);
    expect(await innerText(page, "#vitals")).to.match(/^Figures\s+ended at \d\d:\d\d: locked$/);
    expect((await mustStatus(server()))["locked"]).to.equal(true);
    expect(await statusWith(server(), token())).to.equal(401);
    await page.close();
  });

  it("the review page drops its figures once another client has locked the vault", async () => {
    const { page, problems } = await openPage(browser(), await reviewUrl(server()));
    await waitForState(page, /^Connected/);
    await send(server(), { method: "POST", path: "/v1/lock" });
    await waitForState(page, /^The vault is locked/);
    expect(await innerText(page, "#holders")).to.match(/^0\s+keys in the front end\s+0\s+keys in the key worker/);
    expect(await innerText(page, "#vitals")).to.match(/^Figures\s+ended at \d\d:\d\d: locked$/);
    expect(problems).to.deep.equal([]);
    await page.close();
  });

  it("a page on another port can neither read nor frame nor use the review page", async () => {
    const page = await foreignPage(browser());
    const attempt = (path: string, method: string) =>
      page.evaluate(`fetch("${server().url}${path}", { method: "${method}" }).then(() => "read", () => "refused")`);
    expect(await attempt("/review/", "GET")).to.equal("refused");
    expect(await attempt("/v1/vitals", "GET")).to.equal("refused");
    expect(await attempt("/v1/lock", "POST")).to.equal("refused");
    const framed = `new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.src = "${server().url}/review/";
      frame.onload = () => { try { resolve(frame.contentDocument === null ? "opaque" : "read"); } catch { resolve("opaque"); } };
      document.body.append(frame);
    })`;
    expect(await page.evaluate(framed)).to.equal("opaque");
    await page.close();
  });
});

async function reviewUrl(server: ServerProcess): Promise<string> {
  if ((await mustStatus(server))["locked"] === true) {
    await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase } });
  }
  const { stdout } = await run(["review", "--print-url"], { STRONGROOM_HOME: server.home });
  expect(stdout).to.match(/^https:\/\/localhost:\d+\/review\/#[\w-]{43}\n$/);
  return stdout.trim();
}

async function innerText(page: Page, selector: string): Promise<string> {
  return String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`));
}

async function axeFindings(page: Page): Promise<unknown> {
  await page.evaluate(axe);
  return page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
  );
}

async function statusWith(server: ServerProcess, token: string): Promise<number> {
  return (await send(server, { path: "/v1/metrics", token })).status;
}

async function foreignPage(browser: Browser): Promise<Page> {
  const site = createServer((_, res) =>
    res.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><body>"),
  );
  site.listen(0, "127.0.0.1");
  later(() => void site.close());
  await new Promise((resolve) => site.once("listening", resolve));
  const page = await browser.newPage();
  await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
  return page;
}
