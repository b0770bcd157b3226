/**
 * Writes pictures of the review page, by default `docs/review.png` as it is after a storm: a vault of its own, a run of prove,
 * and gets as a client sends them. `--all DIRECTORY` also writes it light and dark, wide and narrow, before, after and locked.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "puppeteer-core";
import { openPage, startBrowser, stormed, waitForState } from "../rig/browser.js";
import { cleanUpTo, temporaryDirectory } from "../rig/clean-up.js";
import { run, startProcess } from "../rig/process.js";
import { passphrase } from "../rig/server.js";
import { mustCreateToken, mustGet, mustInit, mustPut } from "../rig/test-client.js";

type Picture = `${string}.png`;

const [, , all, directory = "."] = process.argv;

async function takePictures(): Promise<void> {
  const server = await startProcess(["--review-page"], { STRONGROOM_SCRYPT_LOG_N: "16" });
  await mustInit(server);
  for (const name of ["app/db/password", "app/mail/key", "ci/deploy"]) await mustPut(server, name, `value of ${name}`);
  await mustCreateToken(server, { name: "ci", can: ["get"], paths: ["ci/"] });
  const file = join(temporaryDirectory(), "passphrase");
  writeFileSync(file, passphrase, { mode: 0o600 });
  const home = { STRONGROOM_HOME: server.home };
  await run(["prove", "--lock", "--passphrase-file", file], home);
  const { stdout } = await run(["review", "--print-url"], home);
  const { page } = await openPage(await startBrowser(), stdout.trim());
  await waitForState(page, /^Connected/);
  for (let i = 0; i < 40; i++) {
    await mustGet(server, "app/db/password");
    await sleep(250);
  }
  await sleep(3000); // a gap, since no get comes
  await takeAll(page, "before");
  await stormed(page);
  await sleep(4000);
  await take(page, "docs/review.png", "light", 960);
  await takeAll(page, "after");
  await page.click("#lock");
  await waitForState(page, /^The vault is locked/);
  await takeAll(page, "locked");
}

async function takeAll(page: Page, name: string): Promise<void> {
  if (all !== "--all") return;
  for (const scheme of ["light", "dark"]) {
    for (const width of [960, 360])
      await take(page, join(directory, `${name}-${scheme}-${width}.png`) as Picture, scheme, width);
  }
}

async function take(page: Page, path: Picture, scheme: string, width: number): Promise<void> {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 1000 });
  await page.evaluate("scrollTo(0, 0)");
  await page.screenshot({ path });
}

try {
  await takePictures();
} finally {
  await cleanUpTo(0);
}
