/** The tools: `list`, `generate`, `request` and `run`. None returns a value. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import type { StrongroomClient } from "../../../src/client/client.js";
import type { Broker, Scope } from "./broker.js";
import { randomParts } from "./guessable.js";
import { buildMask, isWithin, type Mask, masked, withheldBecause } from "./mask.js";

export type Dependencies = {
  readonly client: StrongroomClient;
  readonly broker: Broker;
  readonly scope: Scope;
  /** The `strongroom` command and its first arguments. */
  readonly strongroom: readonly string[];
  /** Ends running programs. */
  readonly ending: AbortSignal;
};

const instructions = `Strongroom keeps secrets that you can use and never read. Credentials are put into requests on their
way: send requests with the tool request, or run a program with the tool run, and leave the credential out. The tool list
shows which hosts have one.`;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const maxShownBytes = 64 * 1024;

export function toolServer(deps: Dependencies): McpServer {
  const server = new McpServer({ name: "strongroom", version: "0.1.0" }, { instructions });
  addList(server, deps);
  addGenerate(server, deps);
  addRequest(server, deps);
  addRun(server, deps);
  return server;
}

function addList(server: McpServer, { client, scope }: Dependencies): void {
  server.registerTool(
    "list",
    {
      description: "Lists the secrets that can be used, each with its hosts, methods and paths; never a value.",
      inputSchema: { prefix: z.string().optional().describe("only paths that begin with this, such as app/") },
      annotations: { readOnlyHint: true },
    },
    ({ prefix }) =>
      told(async () => {
        const { uses } = await client.listUses({ prefix });
        const shown = uses.filter(({ path }) => isWithin(scope, path));
        return visible(JSON.stringify({ secrets: shown.map(({ private: _, ...use }) => use) }, null, 1));
      }),
  );
}

const unseen = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u007f-\u009f]/gu;

/** Returns the same JSON with escapes for what a person would not see: a path could hide instructions to the agent in it. */
function visible(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(unseen, (character) => character.split("").map(escaped).join(""));
}

function addGenerate(server: McpServer, { client, scope }: Dependencies): void {
  server.registerTool(
    "generate",
    {
      description: "Generates a random password and stores it as a new secret. The value is not returned.",
      inputSchema: {
        path: z.string().describe("the new secret's path, such as app/db/password"),
        length: z.number().int().min(16).max(1024).default(32).describe("number of letters and digits"),
        description: z.string().optional(),
      },
    },
    ({ path, length, description }) =>
      told(async () => {
        if (!isWithin(scope, path)) throw new Error(`${path} is outside of what this server was started with (--use)`);
        const value = randomValue(length);
        const stored = await client.put(path, value, {
          type: "password",
          ifAbsent: true,
          ...(description && { description }),
        });
        value.fill(0);
        return `stored ${stored.path}, version ${stored.version}`;
      }),
  );
}

/** Returns a random value; a long enough value can be masked later. */
function randomValue(length: number): Buffer {
  for (let attempt = 0; ; attempt++) {
    const value = Buffer.from(Array.from({ length }, () => alphabet.charCodeAt(randomInt(alphabet.length))));
    if (attempt === 10 || randomParts(value.toString("latin1")).length > 0) return value;
    value.fill(0);
  }
}

function addRequest(server: McpServer, { client, broker, scope }: Dependencies): void {
  server.registerTool(
    "request",
    {
      description:
        "Sends an HTTPS request to a host that a secret is bound to; the credential is added on the way. Returns status, headers and body, with *** for a credential that the host repeats; only the status where the credential is short or could be guessed.",
      inputSchema: {
        url: z.string().describe("https URL"),
        method: z
          .string()
          .regex(/^(?!CONNECT$)[A-Z]{1,32}$/)
          .default("GET"),
        headers: z.record(z.string(), z.string()).default({}).describe("without the credential"),
        body: z.string().optional(),
      },
    },
    ({ url, method, headers, body }) =>
      told(async () => {
        const to = checkedDestination(url, headers);
        const before = await buildMask(client, scope, to);
        const response = await broker.send({ url: to, method, headers, body });
        const mask = await buildMask(client, scope, to, before); // a value may have changed in between
        const withheld = response.isRefusal ? null : withheldBecause(mask);
        if (withheld !== null) return `HTTP ${response.status}\nThe rest is ${withheld}`;
        const lines = Object.entries(response.headers).map(([name, value]) => `${name}: ${value}`);
        const text = shown(mask, response);
        return `HTTP ${response.status}\n${masked(mask, Buffer.from(lines.join("\n"), "latin1"))}\n\n${text}`;
      }),
  );
}

/** @throws Error for a request that is not sent */
function checkedDestination(url: string, headers: Readonly<Record<string, string>>): URL {
  const to = new URL(url);
  if (to.protocol !== "https:" || to.username !== "" || to.password !== "")
    throw new Error("the URL must be https, without a user");
  if (Object.keys(headers).some((name) => /^(?:if-)?range$/i.test(name)))
    throw new Error("send the request without Range: a part of a credential could not be hidden");
  return to;
}

function addRun(server: McpServer, deps: Dependencies): void {
  server.registerTool(
    "run",
    {
      description:
        "Runs a program in a sandbox whose only network is the broker, which adds the credentials to its requests. Returns exit status, standard output and standard error, with *** for a credential in them; nothing of these where a credential of this server is short or could be guessed.",
      inputSchema: {
        command: z.array(z.string()).min(1).describe("the program and its arguments; no shell"),
        input: z.string().default("").describe("standard input"),
        timeoutSeconds: z.number().int().min(1).max(3600).default(120),
      },
    },
    (wanted) =>
      told(async () => {
        const before = await buildMask(deps.client, deps.scope);
        const { status, stdout, stderr } = await runSandboxed(deps, wanted);
        const mask = await buildMask(deps.client, deps.scope, undefined, before);
        const withheld = withheldBecause(mask);
        if (withheld !== null) return `The program has ended. Its exit status and output are ${withheld}`;
        return `exit status ${status}\n--- standard output\n${shown(mask, stdout)}\n--- standard error\n${shown(mask, stderr)}`;
      }),
  );
}

type Wanted = { readonly command: readonly string[]; readonly input: string; readonly timeoutSeconds: number };
type Output = { readonly body: Buffer; readonly isCut: boolean };
type Ran = { readonly status: string; readonly stdout: Output; readonly stderr: Output };

function runSandboxed(
  { strongroom, scope, ending }: Dependencies,
  { command, input, timeoutSeconds }: Wanted,
): Promise<Ran> {
  const [program = "strongroom", ...before] = strongroom;
  const flags = [
    ...scope.paths.flatMap((path) => ["--use", path]),
    ...scope.allowHosts.flatMap((host) => ["--allow-host", host]),
  ];
  const child = spawn(program, [...before, "agent", "run", "-q", "--sandbox", ...flags, "--", ...command], {
    signal: ending,
  });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const timer = setTimeout(() => child.kill("SIGTERM"), timeoutSeconds * 1000);
  child.stdin.on("error", () => {}).end(input); // a program may end without reading it
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ status: String(code ?? signal), stdout: stdout(), stderr: stderr() });
    });
  });
}

function collect(stream: NodeJS.ReadableStream): () => Output {
  const pieces: Buffer[] = [];
  let length = 0;
  stream.on("data", (piece: Buffer) => {
    if (length <= maxShownBytes) pieces.push(piece);
    length += piece.length;
  });
  return () => ({ body: Buffer.concat(pieces), isCut: length > maxShownBytes });
}

function shown(mask: Mask, { body, isCut }: Output): string {
  const isLonger = isCut || body.length > maxShownBytes;
  const text = masked(mask, body.subarray(0, maxShownBytes), isLonger);
  return isLonger ? `${text}\n[cut here]` : text;
}

/** The result of a tool: its text, or what failed. The client's errors never repeat a value. */
async function told(work: () => Promise<string>) {
  try {
    return { content: [{ type: "text" as const, text: await work() }] };
  } catch (error) {
    const text = error instanceof Error ? error.message : "the tool failed";
    return { content: [{ type: "text" as const, text }], isError: true };
  }
}
