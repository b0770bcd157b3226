/**
 * `strongroom complete-paths`: hidden command that the completion scripts call.
 * It prints the paths that start as typed, up to the next slash, or the names of tokens.
 * It asks nothing, soon gives up, and is silent about every error.
 */
import { type Command, Option } from "commander";
import { duration } from "../../cli/kit/args/args.js";
import { canonical } from "../../cli/kit/args/paths.js";
import { clientEnvironment } from "../../cli/kit/args/start-settings.js";
import { trashIn } from "../../cli/kit/connection/secrets.js";
import type { Io } from "../../cli/kit/io.js";
import { StrongroomClient } from "../../client/client.js";

/** A user is waiting at the prompt. */
const defaultTimeoutMs = 2000;

type Flags = { readonly timeout: number; readonly tokens?: true; readonly trash?: "only" | "too" };

export function define(command: Command, io: Io): void {
  command
    .argument("[prefix]")
    .option("--tokens", "the names of all client tokens instead")
    .addOption(new Option("--trash <how>", "paths in the trash: only these, or these too").choices(["only", "too"]))
    .option("--timeout <duration>", "how long the server may take", duration(60_000), defaultTimeoutMs)
    .action(async (prefix: string | undefined, { timeout, tokens, trash }: Flags) => {
      const finding = tokens ? tokenNames(io, timeout) : candidates(io, canonical(prefix ?? ""), timeout, trash);
      const found = await finding.catch(() => []); // locked or unreachable: none
      io.stdout.write(found.map((path) => `${path}\n`).join(""));
    });
}

async function tokenNames(io: Io, timeoutMs: number): Promise<string[]> {
  const client = new StrongroomClient({ timeoutMs, environment: await clientEnvironment(io.env, undefined) });
  try {
    return (await client.listTokens()).tokens.map(({ name }) => name);
  } finally {
    await client.close();
  }
}

async function candidates(io: Io, prefix: string, timeoutMs: number, trash?: "only" | "too"): Promise<string[]> {
  const client = new StrongroomClient({ timeoutMs, environment: await clientEnvironment(io.env, undefined) });
  const signal = AbortSignal.timeout(timeoutMs);
  const found = new Set<string>();
  const add = (paths: readonly string[]) => {
    for (const path of paths) found.add(upToNextSlash(path, prefix));
  };
  try {
    if (trash !== "only") {
      for await (const { entries } of client.pages({ prefix, limit: 1000, signal }))
        add(entries.map(({ path }) => path));
    }
    if (trash !== undefined) {
      const { entries, damaged } = await trashIn(client, prefix, signal);
      add([...entries.map(({ path }) => path), ...damaged]);
    }
    return [...found].sort();
  } finally {
    await client.close();
  }
}

function upToNextSlash(path: string, prefix: string): string {
  const slash = path.indexOf("/", prefix.length);
  return slash === -1 ? path : path.slice(0, slash + 1);
}
