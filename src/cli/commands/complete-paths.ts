/** Hidden command for the completion scripts: paths that start as typed, up to the next slash, or tokens. Never an error. */
import type { Command } from "commander";
import { StrongroomClient } from "../../client/client.js";
import { duration } from "../../config/readers.js";
import { canonical } from "../lib/paths.js";

/** A user is waiting at the prompt. */
const defaultTimeoutMs = 2000;

type Flags = { readonly timeout: number; readonly tokens?: true };

export function define(command: Command): void {
  command
    .argument("[prefix]")
    .option("--tokens", "the names of all client tokens instead")
    .option("--timeout <duration>", "how long the server may take", duration(60_000), defaultTimeoutMs)
    .action(async (prefix: string | undefined, { timeout, tokens }: Flags) => {
      const finding = tokens ? tokenNames(timeout) : candidates(canonical(prefix ?? ""), timeout);
      const found = await finding.catch(() => []); // locked or unreachable: none
      process.stdout.write(found.map((path) => `${path}\n`).join(""));
    });
}

async function tokenNames(timeoutMs: number): Promise<string[]> {
  const client = new StrongroomClient({ timeoutMs });
  try {
    return (await client.listTokens()).tokens.map(({ name }) => name);
  } finally {
    await client.close();
  }
}

async function candidates(prefix: string, timeoutMs: number): Promise<string[]> {
  const client = new StrongroomClient({ timeoutMs });
  const signal = AbortSignal.timeout(timeoutMs);
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
