/** Background process of `--copy`: clears the clipboard if it still holds the value. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { processIo } from "../io.js";
import { feed, output } from "../programs/programs.js";
import type { ClearOrder } from "./clipboard.js";

void clearLater();

async function clearLater(): Promise<void> {
  const { clipboard, seconds, ...value } = JSON.parse(await text(process.stdin)) as ClearOrder;
  await sleep(seconds * 1000);
  const held = await output(processIo, clipboard.paste);
  const isThere = [held, withoutAddedNewline(held)].some((bytes) => isTheValue(bytes, value));
  if (isThere) await feed(processIo, clipboard.clear, Buffer.alloc(0));
  held.fill(0);
}

function isTheValue(bytes: Uint8Array, { key, mac }: Pick<ClearOrder, "key" | "mac">): boolean {
  const found = createHmac("sha256", Buffer.from(key, "hex")).update(bytes).digest();
  return timingSafeEqual(found, Buffer.from(mac, "hex"));
}

/** Some programs add a newline to what they print. */
function withoutAddedNewline(bytes: Buffer): Buffer {
  if (bytes.at(-1) !== 0x0a) return bytes;
  return bytes.subarray(0, bytes.at(-2) === 0x0d ? -2 : -1);
}
