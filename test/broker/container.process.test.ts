/** Programs without a network that reach the broker by its socket, as docs/containers.md says, word for word. */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../../tools/docs/document-files.js";
import { bind, startUpstream, startWithBroker, type Upstream, value } from "../../tools/rig/broker-rig.js";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, type Ended, environment, mainFile, node } from "../../tools/rig/process.js";
import { realScryptCost, type TestServer } from "../../tools/rig/server.js";
import { mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith } from "../cli/run-command.js";
import { runHere } from "../support/command-here.js";

type Rig = {
  readonly server: TestServer;
  readonly upstream: Upstream;
  /** The owner's home, with the directory that containers have. */
  readonly home: string;
  readonly socket: string;
};

const page = blocksIn(readFileSync("docs/containers.md", "utf8"));

/** Returns a file of the page, with the port of this server. */
function written(file: string, { server }: Rig): string {
  const code = page.find((block) => block.file === file)?.code ?? "";
  return code.replaceAll("13200", String(server.brokerPort));
}

/** Longest life of a container, in milliseconds. */
const timeout = 120_000;

function start(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  return collect(spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], timeout, killSignal: "SIGKILL" }))
    .ended;
}

function works(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/** Waits for the relay, then sends requests with curl and Node, by the proxy and by the route. */
const client = `
until curl -s -o /dev/null "http://127.0.0.1:$PORT/"; do sleep 0.1; done
curl -sS "https://localhost:$UPSTREAM/curl"
"$NODE" --input-type=module -e '
  const { PORT, UPSTREAM, AGENT_TOKEN } = process.env;
  const route = await fetch("http://127.0.0.1:" + PORT + "/r/up/node", { headers: { "x-api-key": AGENT_TOKEN } });
  process.stdout.write(await route.text());
  const hasProxy = process.allowedNodeEnvironmentFlags.has("--use-env-proxy");
  process.stdout.write(hasProxy ? await (await fetch("https://localhost:" + UPSTREAM + "/proxy")).text() : "GET /proxy 0\\n");
'
curl -sS --noproxy "*" "https://127.0.0.1:$UPSTREAM/direct" 2> /dev/null || echo "no network"
curl -sS https://example.org/ 2>&1 | tail -n 1
`;

const served = /^GET \/curl 0\nGET \/node 0\nGET \/proxy 0\nno network\ncurl: .* 403\n$/;

describe("programs without a network", function () {
  this.timeout(timeout);
  const rig = shared(async (): Promise<Rig> => {
    const home = temporaryDirectory();
    const socket = join(home, ".agent", "broker.sock");
    mkdirSync(join(home, ".agent"), { mode: 0o700 });
    const upstream = await startUpstream();
    const server = await startWithBroker([upstream], { ...realScryptCost, brokerSocket: socket });
    await mustPut(server, "dev/key", { value });
    await bind(server, "dev/key", { host: "localhost", port: upstream.port, private: true, name: "up" });
    return { server, upstream, home, socket };
  });

  const place = () => ({ STRONGROOM_HOME: rig().server.home, STRONGROOM_ADDRESS: rig().server.url });
  const agentEnv = (...flags: readonly string[]) => runHere(["agent", "env", ...flags], place());
  const inside = () => ({ NODE: node, PORT: String(rig().server.brokerPort), UPSTREAM: String(rig().upstream.port) });

  function mustHaveCredentials(): void {
    const { seen } = rig().upstream;
    expect(seen.map(({ headers }) => headers["authorization"])).to.deep.equal(seen.map(() => `Bearer ${value}`));
    expect(seen.map(({ url }) => url)).to.include.members(["/curl", "/node"]);
    seen.length = 0;
  }

  for (const [language, file, program] of [
    ["Python", "relay.py", "python3"],
    ["socat", "relay.sh", "sh"],
  ] as const) {
    it(`a program in unshare -n uses secrets through the relay in ${language}`, async function () {
      needs(
        this,
        works("unshare", "-rn", "--pid", "--fork", "ip", "link", "set", "lo", "up"),
        "network namespaces and ip",
      );
      needs(this, works("curl", "--version"), "curl");
      if (language === "Python") needs(this, works("python3", "--version"), "Python");
      else needs(this, works("socat", "-V"), "socat");
      const directory = temporaryDirectory();
      const relay = written(file, rig());
      expect(relay.split("\n").length).to.be.at.most(30);
      writeFileSync(join(directory, file), relay);
      const { stdout } = mustDo(await agentEnv("-q", "--use", "dev/", "--socket", rig().socket));
      writeFileSync(join(directory, "env"), stdout);
      const script = `ip link set lo up; ${program} ${join(directory, file)} ${rig().socket} "$PORT" & . ${directory}/env; ${client}`;
      const flags = ["-rn", "--pid", "--fork", "--kill-child", "sh", "-c", script];
      const { stdout: shown, stderr } = await start("unshare", flags, environment(inside()));
      expect(shown, stderr).to.match(served);
      mustHaveCredentials();
    });
  }

  it("a program in the dev container uses secrets, and sees nothing else of the owner's home", async function () {
    const network = ["--unshare-net", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"];
    needs(this, works("bwrap", ...network, "curl", "--version"), "bubblewrap, namespaces and curl");
    needs(this, works("python3", "--version") && works("bash", "--version"), "Python and bash");
    const { home } = rig();
    const text = written("devcontainer.json", rig()).replace(/\$\{localEnv:HOME\}/g, home);
    const recipe = JSON.parse(text) as {
      readonly initializeCommand: string;
      readonly runArgs: readonly string[];
      readonly mounts: readonly string[];
      readonly containerEnv: Readonly<Record<string, string>>;
      readonly postStartCommand: string;
    };
    expect(recipe.runArgs).to.deep.equal(["--network=none"]);
    writeFileSync(join(home, ".agent", "relay.py"), written("relay.py", rig()));
    writeFileSync(join(home, "private"), "kept");
    writeFileSync(join(home, "strongroom"), `#!/bin/sh\nexec "${node}" "${mainFile}" "$@"\n`);
    chmodSync(join(home, "strongroom"), 0o755);
    const own = environment({ ...place(), HOME: home, PATH: `${home}:${process.env["PATH"]}` });
    expect(await start("sh", ["-c", recipe.initializeCommand], own)).to.include({ code: 0 });
    const mounts = recipe.mounts.flatMap((mount) => {
      const { source = "", target = "" } = Object.fromEntries(mount.split(",").map((each) => each.split("=")));
      return [mount.endsWith(",readonly") ? "--ro-bind" : "--bind", source, target];
    });
    const variables = Object.entries({ ...recipe.containerEnv, ...inside() }).flatMap((each) => ["--setenv", ...each]);
    const script = `ls -A ${home}; ${recipe.postStartCommand}\n${client}`;
    const args = [...network, "--tmpfs", home, ...mounts, ...variables, "--proc", "/proc", "bash", "-c", script];
    const { stdout, stderr } = await start("bwrap", args, environment({}));
    expect(stdout.startsWith(".agent\n"), stderr).to.equal(true);
    expect(stdout.slice(".agent\n".length), stderr).to.match(served);
    mustHaveCredentials();
  });

  it("agent env prints quoted variables, readable certificates and how to end the session", async () => {
    const { socket, server } = rig();
    const flags = ["--use", "/", "--ttl", "1h", "--placeholder", "GH_TOKEN", "--socket", socket];
    const { stdout, stderr } = await agentEnv(...flags);
    for (const line of stdout.trimEnd().split("\n")) expect(line).to.match(/^export [A-Za-z_]+='[^']*'$/);
    expect(stdout).not.to.contain("STRONGROOM");
    expect(stdout).to.contain("export GH_TOKEN='strongroom-broker-placeholder'\n");
    const [, token, port] = /export HTTPS_PROXY='http:\/\/strongroom:(.+)@127\.0\.0\.1:(\d+)'/.exec(stdout) ?? [];
    expect(Number(port)).to.equal(server.brokerPort);
    const [, file = ""] = /export SSL_CERT_FILE='(.+)'/.exec(stdout) ?? [];
    expect(readFileSync(file, "utf8")).to.contain("-----BEGIN CERTIFICATE-----");
    expect(statSync(file).mode & 0o444).to.equal(0o444);
    const [, name = ""] = /^session (agent-\w+) ends .* or with {2}strongroom token revoke \1\n$/.exec(stderr) ?? [];
    expect(file).to.match(new RegExp(`/.agent/${name}/`));
    const { uses } = mustSucceed(await send(server, { path: "/v1/broker", token: String(token) }));
    expect(uses, "--use / is the whole vault").to.have.lengthOf(1);
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${name}` }));
    mustDo(await agentEnv("-q", "--use", "dev/", "--socket", socket));
    expect(readdirSync(join(socket, ".."))).not.to.include(name);
  });

  it("agent env makes no session where the broker does not listen, or nothing is bound", async () => {
    const { socket, server } = rig();
    const before = mustSucceed(await send(server, { path: "/v1/tokens" }))["tokens"];
    const other = join(temporaryDirectory(), "none.sock");
    const refused: readonly (readonly [code: number, says: string, ...flags: string[]])[] = [
      [2, `the broker does not listen at ${other}: start the server with --broker-socket`, "--socket", other],
      [4, "no secret there is bound to a host", "--use", "none/", "--socket", socket],
      [2, "env needs --socket FILE"],
      [2, "env takes no command", "--socket", socket, "--", "true"],
      [2, "--write has no effect with env", "--socket", socket, "--write", "."],
    ];
    for (const [code, says, ...flags] of refused) mustRefuseWith(await agentEnv(...flags), code, says);
    expect(mustSucceed(await send(server, { path: "/v1/tokens" }))["tokens"]).to.deep.equal(before);
  });
});
