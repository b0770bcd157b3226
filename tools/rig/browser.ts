/** Debian's chromium, driven by puppeteer, on the review page. */
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import { later, temporaryDirectory } from "./clean-up.js";
import { environment } from "./process.js";
import { passphrase } from "./server.js";

export const chromium = "/usr/bin/chromium";

type Opened = { readonly page: Page; readonly problems: string[]; readonly token: () => string };

export async function startBrowser(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors"];
  const browser = await puppeteer.launch({
    executablePath: chromium,
    args,
    userDataDir: temporaryDirectory(),
    env: environment({}),
    timeout: 240_000, // on a busy machine, chromium takes minutes to start
  });
  later(() => browser.close());
  return browser;
}

/** `problems`: errors of scripts and on the console, where violations of the policy are reported as well. */
export async function openPage(browser: Browser, url: string): Promise<Opened> {
  const page = await browser.newPage();
  const problems: string[] = [];
  let token = "";
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("response", async (response) => {
    if (!response.url().endsWith("/v1/review/token") || !response.ok()) return;
    token = String(((await response.json()) as { token: string }).token);
  });
  await page.goto(url, { timeout: 0 });
  return { page, problems, token: () => token };
}

export async function waitForState(page: Page, state: RegExp): Promise<void> {
  await page.waitForFunction(`${state}.test(document.querySelector("#state").innerText)`, { timeout: 60_000 });
}

/** Starts a storm, and waits until it has been seen and is over. */
export async function stormed(page: Page): Promise<void> {
  await page.type("#passphrase", passphrase);
  await page.keyboard.press("Enter");
  const isShown = (pattern: RegExp, id: string) =>
    page.waitForFunction(`${pattern}.test(document.querySelector("#${id}").innerText)`, { timeout: 120_000 });
  await isShown(/[1-9]\d* waiting/, "vitals");
  await isShown(/In the storm, p99/, "vitals");
  await isShown(/16 unlocks took/, "storm-result");
}
