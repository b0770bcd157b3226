/** Scrapes of a server's metrics, parsed. */
import { expect } from "chai";
import type { TestServer } from "../../tools/rig/server.js";
import { send } from "../../tools/rig/test-client.js";

/** `series`: name and labels as printed. */
export type Scrape = {
  readonly text: string;
  readonly value: (series: string) => number | undefined;
  readonly series: readonly string[];
};

export async function mustScrape(server: TestServer, token?: string): Promise<Scrape> {
  const { status, headers, text } = await send(server, { path: "/v1/metrics", ...(token && { token }) });
  expect(status, text).to.equal(200);
  expect(headers["content-type"]).to.equal("text/plain; version=0.0.4; charset=utf-8");
  return parsed(text);
}

/** Waits until key derivations queue behind a running one. */
export async function untilDerivationsWait(server: TestServer): Promise<void> {
  while (((await mustScrape(server)).value("strongroom_derivations_waiting") ?? 0) === 0);
}

function parsed(text: string): Scrape {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const values = new Map(lines.map((line) => [line.replace(/ \S+$/, ""), Number(line.replace(/^.* /, ""))]));
  return { text, value: (series) => values.get(series), series: [...values.keys()] };
}

/** The names of a scrape's metrics, as queries use them: a histogram has three. */
export function namesIn({ series }: Scrape): ReadonlySet<string> {
  return new Set(series.map((one) => one.replace(/\{.*/, "")));
}
