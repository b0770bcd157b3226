/** The recipes of the documents, word for word, with stand-ins for the programs that a machine may lack. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect } from "chai";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { type Block, blocksIn } from "../../tools/docs/document-files.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, type Ended } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { hasPython } from "../support/pseudo-terminal.js";
import { helperEnvironment } from "./helper-programs.js";
import { loadCredential } from "./systemd-client.js";

const page = (name: string) => blocksIn(readFileSync(`docs/${name}.md`, "utf8"));

function find(blocks: readonly Block[], holds: (block: Block) => boolean): string {
  const block = blocks.find(holds);
  if (block === undefined) throw new Error("the page has no such block");
  return block.code;
}

/** Compose shows what it would write to the container's file. */
const docker = `#!/bin/sh
[ "$*" = "compose up --detach" ] || exit 9
variable=$(sed -n 's/^ *environment: *\\([A-Z_][A-Z_]*\\)$/\\1/p' compose.yaml)
eval "printf %s \\"\\$$variable\\""
`;

/** podman runs the commands of its driver by a shell, with an id in the environment. */
const podman = `#!/bin/sh
run() { SECRET_ID=0123456789abcdef012345678 sh -c "$(sed -n "s/^$1 = \\"\\(.*\\)\\"/\\1/p" ~/.config/containers/containers.conf)"; }
case "$*" in
  "secret create db-password -") run store ;;
  "run --secret db-password docker.io/library/alpine cat /run/secrets/db-password") run lookup ;;
  *) exit 9 ;;
esac
`;

/** A server whose name is the credential that it has. */
const mcpServer = `#!/usr/bin/env node
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method !== "initialize") return;
  const serverInfo = { name: process.env.GITHUB_PERSONAL_ACCESS_TOKEN, version: process.argv[2] };
  const result = { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
`;

describe("recipes", function () {
  this.timeout(120_000);
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const path of ["app/db/password", "mail/password", "ai/github", "ai/anthropic", "ai/openai"])
      await mustPut(started, path, { value: `value of ${path}` });
  });

  type Place = { readonly home: string; readonly env: NodeJS.ProcessEnv };

  /** Makes a home with these files, whose `bin` is on PATH. */
  function place(files: Readonly<Record<string, string>>): Place {
    const home = temporaryDirectory();
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), text);
      if (name.startsWith("bin/")) chmodSync(join(home, name), 0o755);
    }
    const env = helperEnvironment(server(), { HOME: home });
    return { home, env: { ...env, PATH: [join(home, "bin"), env["PATH"]].join(delimiter) } };
  }

  function start(script: string, { home, env }: Place): ChildProcess {
    return spawn("sh", ["-ec", script], {
      ...{ env, cwd: home, stdio: ["ignore", "pipe", "pipe"] },
      ...{ timeout: 100_000, killSignal: "SIGKILL" },
    });
  }

  const run = (script: string, at: Place): Promise<Ended> => collect(start(script, at)).ended;

  it("run gives Compose a secret that its file names", async () => {
    const blocks = page("recipes");
    const file = find(blocks, (block) => block.file === "compose.yaml");
    const { services, secrets } = parseYaml(file);
    expect(Object.keys(secrets)).to.deep.equal(services.web.secrets);
    expect(services.web.environment.POSTGRES_PASSWORD_FILE).to.equal(`/run/secrets/${services.web.secrets[0]}`);
    const at = place({ "compose.yaml": file, "bin/docker": docker });
    expect(
      await run(
        find(blocks, ({ language }) => language === "sh"),
        at,
      ),
    ).to.deep.equal({
      ...{ code: 0, stdout: "value of app/db/password", stderr: "" },
    });
  });

  it("podman stores its secrets in the vault", async () => {
    const script = find(page("extras/podman-secret"), ({ language }) => language === "sh");
    expect(await run(script, place({ "bin/podman": podman }))).to.deep.equal({ code: 0, stdout: "s3cret", stderr: "" });
  });

  it("MCP servers start with their keys, and not while the vault is locked", async () => {
    const { mcpServers } = JSON.parse(find(page("recipes"), (block) => block.file === "mcp.json"));
    const { command, args } = mcpServers.github;
    const { env } = place({ "bin/github-mcp-server": mcpServer });
    const connect = async () => {
      const client = new Client({ name: "host", version: "1" });
      const transport = new StdioClientTransport({ command, args, env: env as Record<string, string>, stderr: "pipe" });
      let said = "";
      transport.stderr?.on("data", (chunk) => {
        said += String(chunk);
      });
      later(() => client.close());
      await client.connect(transport).catch((error: unknown) => {
        throw new Error(said, { cause: error });
      });
      return client.getServerVersion();
    };
    expect(await connect()).to.deep.equal({ name: "value of ai/github", version: "stdio" });
    await mustLock(server());
    const refused = await connect().catch(String);
    await mustUnlock(server());
    expect(refused).to.match(/the vault is locked/);
  });

  it("Claude Code and Codex get their keys by the commands in their settings", async () => {
    const blocks = page("extras/credential");
    const { apiKeyHelper } = JSON.parse(find(blocks, (block) => block.file === "settings.json"));
    const codex = parseToml(find(blocks, (block) => block.file === "config.toml")) as {
      readonly model_provider: string;
      readonly model_providers: Record<
        string,
        { readonly auth: { readonly command: string; readonly args: string[] } }
      >;
    };
    const { command, args } = codex.model_providers[codex.model_provider]?.auth ?? { command: "", args: [] };
    const at = place({});
    expect((await run(apiKeyHelper, at)).stdout.trimEnd()).to.equal("value of ai/anthropic");
    expect((await run([command, ...args].join(" "), at)).stdout.trimEnd()).to.equal("value of ai/openai");
  });

  it("a systemd unit gets its credential once the unit with the sockets has started", async function () {
    needs(this, hasPython(), "Python");
    const blocks = page("extras/credentials");
    const at = place({ "bin/example": '#!/bin/sh\ncat "$2"\n' });
    const { PATH = "" } = at.env;
    mkdirSync(join(at.home, ".local/bin"), { recursive: true });
    const program = PATH.split(delimiter).find((directory) => existsSync(join(directory, "strongroom"))) ?? "";
    symlinkSync(join(program, "strongroom"), join(at.home, ".local/bin/strongroom"));
    const credentials = join(at.home, "credentials");
    mkdirSync(credentials);
    const lines = (unit: string, key: string) =>
      [...find(blocks, (block) => block.file === unit).matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(
        ([, text = ""]) => text.replaceAll("%h", at.home).replaceAll("%d", credentials),
      );
    const [serve = "", settled = ""] = ["ExecStart", "ExecStartPost"].flatMap((key) =>
      lines("strongroom-credentials.service", key),
    );
    const serving = start(`exec ${serve}`, at);
    const ended = collect(serving).ended;
    expect((await Promise.race([run(settled, at), ended])).code).to.equal(0);
    for (const text of lines("example.service", "LoadCredential")) {
      const [name = "", path = ""] = text.split(":");
      const { stdout } = await loadCredential(path);
      writeFileSync(join(credentials, name), stdout);
    }
    const [example = ""] = lines("example.service", "ExecStart");
    expect((await run(example, at)).stdout).to.equal("value of app/db/password");
    serving.kill("SIGTERM");
    await ended;
    expect(serving.exitCode).to.equal(0);
  });
});
