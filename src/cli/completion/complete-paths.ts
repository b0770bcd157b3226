/** Owns the hidden command that completion scripts call: paths that begin as typed, folder by folder. Never an error. */
import type { Command } from "commander";
import { StrongroomClient } from "../../client/client.js";
import { canonical } from "../session/secret-arguments.js";

/** Somebody waits with a finger on the key. */
const patienceMs = 2000;

export function define(command: Command): void {
  command.argument("[prefix]").action(async (prefix = "") => {
    const found = await candidates(canonical(prefix)).catch(() => []); // locked, unreachable: nothing to offer
    process.stdout.write(found.map((path) => `${path}\n`).join(""));
  });
}

async function candidates(prefix: string): Promise<string[]> {
  const client = new StrongroomClient({ timeoutMs: patienceMs });
  const signal = AbortSignal.timeout(patienceMs);
  const found = new Set<string>();
  try {
    for await (const { entries } of client.pages({ prefix, limit: 1000, signal })) {
      for (const { path } of entries) found.add(upToNextSlash(path, prefix));
    }
    return [...found];
  } finally {
    await client.close();
  }
}

function upToNextSlash(path: string, prefix: string): string {
  const slash = path.indexOf("/", prefix.length);
  return slash === -1 ? path : path.slice(0, slash + 1);
}
