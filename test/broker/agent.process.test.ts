/** `strongroom use`, `agent run` and `approve`: the command line of the broker. */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { brokerRig, value } from "../../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, environment, mainFile, node, run } from "../../tools/rig/process.js";
import { mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { runHere, runsHere } from "../support/command-here.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";

describe("the command line of the broker", () => {
  const rig = brokerRig();

  function strongroom(...args: readonly string[]) {
    const { server } = rig();
    const place = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
    return runsHere(args, place) ? runHere(args, place) : run(args, { ...place, LANG: "C.UTF-8" });
  }

  function agent(...args: readonly string[]) {
    return strongroom("agent", "run", "--no-sandbox", "--use", "app/", ...args);
  }

  describe("strongroom use", () => {
    it("use adds, lists and removes bindings", async () => {
      const { server } = rig();
      await mustPut(server, "cli/key", { value });
      const added = await strongroom(
        "use",
        "add",
        "cli/key",
        "API.Example.com",
        "--header",
        "X-Api-Key",
        "--method",
        "get,post",
        "--path",
        "/v1/**",
        "--ask",
        "10m",
        "--name",
        "ex",
      );
      expect(added).to.include({ code: 0 });
      expect(added.stderr + added.stdout).to.contain("cli/key is bound to api.example.com");
      const listed = await strongroom("use", "ls", "cli/");
      expect(listed.stdout).to.equal(
        "cli/key  api.example.com  x-api-key: {}; GET, POST; /v1/**; asks: 10m; route /r/ex/\n",
      );
      expect(await strongroom("use", "rm", "cli/key", "api.example.com")).to.include({ code: 0 });
      expect((await strongroom("use", "ls", "cli/")).stdout).to.equal("");
      const none = await strongroom("use", "rm", "cli/key", "api.example.com");
      expect(none).to.include({
        code: 4,
        stderr: "strongroom: cli/key is not bound to any host; strongroom use ls  lists the bindings\n",
      });
    });

    it("use rm names the bound hosts of a secret that is not bound to the given one", async () => {
      await mustPut(rig().server, "cli/two", { value });
      for (const host of ["api.example.com", "example.org"]) await strongroom("use", "add", "cli/two", host);
      const near = await strongroom("use", "rm", "cli/two", "api.example.co");
      expect(near).to.include({
        code: 4,
        stderr: "strongroom: cli/two is not bound to api.example.co. Did you mean api.example.com?\n",
      });
      const far = await strongroom("use", "rm", "cli/two", "localhost");
      expect(far.stderr).to.equal(
        "strongroom: cli/two is not bound to localhost: it is bound to api.example.com, example.org\n",
      );
    });

    it("use add --template binds for at least 20 services as listed", async () => {
      await mustPut(rig().server, "cli/template", { value });
      const { stdout } = await strongroom("use", "templates", "--json");
      const { templates } = JSON.parse(stdout) as { readonly templates: readonly Record<string, unknown>[] };
      expect(templates.length).to.be.at.least(20);
      expect(new Set(templates.map(({ name }) => name)).size).to.equal(templates.length);
      const shown = (await strongroom("use", "templates")).stdout.split("\n");
      for (const { name, made, ...sent } of templates) {
        const { stdout: added } = await strongroom("use", "add", "cli/template", "--template", String(name), "--json");
        expect(JSON.parse(added)).to.include({ path: "cli/template", port: 443, ask: "never" }).and.deep.include(sent);
        expect(made).to.match(/^https:\/\/[a-z.]+\.[a-z]+\//);
        expect(shown.filter((line) => line.startsWith(`${name} `) && line.endsWith(` ${made}`))).to.have.length(1);
      }
    });

    it("a given host and flags override those of a template", async () => {
      await mustPut(rig().server, "cli/own", { value });
      const own = ["git.example.com", "--method", "get", "--ask", "session"];
      expect(await strongroom("use", "add", "cli/own", ...own, "--template", "gitlab")).to.include({
        code: 0,
        stdout: "cli/own is bound to git.example.com: private-token: {}; GET; asks: session\n",
      });
    });

    const computed: readonly (readonly [flags: readonly string[], shown: string, binding: object])[] = [
      [
        ["--github-app", "123", "--installation", "67", "--api", "https://git.example.com/api/v3"],
        "authorization: Bearer {}, with a token of app 123 of GitHub",
        { githubApp: { appId: "123", installation: "67", api: "https://git.example.com/api/v3" } },
      ],
      [
        ["--github-app", "123", "--installation", "67", "--basic", "x-access-token"],
        "Basic authentication as x-access-token, with a token of app 123 of GitHub",
        { githubApp: { appId: "123", installation: "67" }, basic: "x-access-token" },
      ],
      [
        ["--oauth", "https://id.example.com/token", "--client-id", "my id", "--scope", "a b"],
        "authorization: Bearer {}, with a token of https://id.example.com/token",
        { oauth: { tokenUrl: "https://id.example.com/token", clientId: "my id", scope: "a b" } },
      ],
      [
        ["--sigv4", "s3/eu-central-1"],
        "signed for s3 in eu-central-1",
        { sigv4: { service: "s3", region: "eu-central-1" } },
      ],
    ];
    for (const [flags, shown, binding] of computed) {
      it(`use add binds with  ${flags.join(" ")}`, async () => {
        await mustPut(rig().server, "cli/computed", { value });
        const added = await strongroom("use", "add", "cli/computed", "api.example.com", ...flags, "--json");
        expect(JSON.parse(added.stdout)).to.deep.include(binding);
        const { stdout } = await strongroom("use", "ls", "cli/computed");
        expect(stdout).to.equal(`cli/computed  api.example.com  ${shown}\n`);
      });
    }

    const wrong: readonly (readonly [args: readonly string[], says: string])[] = [
      [["add", "app/key", "a.test", "--github-app", "1"], "--github-app and --installation need each other"],
      [["add", "app/key", "a.test", "--api", "https://a.test"], "--github-app and --installation need each other"],
      [["add", "app/key", "a.test", "--client-id", "1"], "--oauth and --client-id need each other"],
      [["add", "app/key", "a.test", "--oauth", "http://a.test/", "--client-id", "1"], "must be an https URL"],
      [["add", "app/key", "a.test", "--sigv4", "s3"], "SERVICE/REGION, such as s3/us-east-1"],
      [["add", "app/key", "a.test", "--sigv4", "s3/a", "--basic", "me"], "cannot be used together"],
      [["add", "app/key", "a.test", "--device"], "--device has no effect with add"],
      [["login"], "login needs the secret's path"],
      [
        ["login", "app/key"],
        "has no such binding: strongroom use add app/key HOST --oauth URL --client-id ID  makes one",
      ],
      [["login", "app/key", "--sigv4", "s3/a"], "--sigv4 has no effect with login"],
      [["add", "app/key", "--template", "githab"], "lists. Did you mean github?"],
      [["add", "app/key", "--template", "github", "--basic", "me"], "cannot be used together"],
      [["add", "--template", "github"], "needs the secret's path and a host"],
      [["rm", "app/key", "--template", "github"], "--template has no effect with rm"],
      [["templates", "app/key"], "templates takes no argument"],
      [["add", "app/key"], "needs the secret's path and a host"],
      [["add", "app/key", "a.test", "--bearer", "--basic", "me"], "cannot be used together"],
      [["add", "app/key", "https://a.test/"], "DNS name"],
      [["add", "app/key", "a.test", "--port", "x"], "port from 1 to 65535"],
      [["ls", "app/", "--ask", "never"], "--ask has no effect with ls"],
    ];
    for (const [args, says] of wrong) {
      it(`refuses  use ${args.join(" ")}`, async () => {
        const { code, stderr } = await strongroom("use", ...args);
        expect(code).to.be.above(0);
        expect(stderr).to.contain(says);
      });
    }
  });

  describe("strongroom agent run", () => {
    it("agent run refuses a session that never ends", async () => {
      const { code, stderr } = await agent("--ttl", "0", "--", "true");
      expect(stderr).to.match(/--ttl must be a duration with its unit, .*of more than 0 and at most 30d/);
      expect(code).to.equal(2);
    });

    it("agent run gives the program the broker, and no secret or setting of the vault", async () => {
      const { upstream } = rig();
      const seen = upstream.seen.length;
      const { code, stdout, stderr } = await agent(
        "--placeholder",
        "GH_TOKEN",
        "--",
        "sh",
        "-c",
        `env; curl -sS https://localhost:${upstream.port}/x`,
      );
      expect({ code, stderr }).to.include({ code: 0 });
      expect(stdout).to.contain("GET /x 0").and.not.contain(value).and.not.contain("STRONGROOM_");
      expect(stdout).to.contain("GH_TOKEN=strongroom-broker-placeholder");
      expect(stderr.trimEnd().split("\n")).to.have.length(2);
      expect(upstream.seen[seen]?.headers).to.include({ authorization: `Bearer ${value}` });
    });

    it("agent run omits a variable that is not UTF-8, with a warning", async function () {
      needs(this, process.platform === "linux", "Linux");
      const { server } = rig();
      const env = environment({ STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url, Y: "caf\u00e9 \ufffd" });
      const command = `"$@" agent run -q --no-sandbox --use app/ -- sh -c 'echo "\${X-none} $Y"'`;
      const script = `X="$(printf 'a\\351')"; export X; ${command}`;
      const { code, stdout, stderr } = await collect(spawn("sh", ["-c", script, "sh", node, mainFile], { env })).ended;
      expect({ code, stdout }, stderr).to.deep.equal({ code: 0, stdout: "none caf\u00e9 \ufffd\n" });
      expect(stderr).to.equal("strongroom: warning: not UTF-8, and so not passed on to the command: X\n");
    });

    it("agent run returns the program's status, and revokes its token", async () => {
      const { server } = rig();
      const { code, stdout } = await agent("-q", "--", "sh", "-c", "echo $AGENT_TOKEN; exit 7");
      expect(code).to.equal(7);
      const answer = await send(server, { path: "/v1/broker", token: stdout.trim() });
      expect(answer.json).to.include({ code: "UNAUTHORIZED", reason: "revoked" });
    });

    it("agent run returns 127 without a session when the program is not found", async () => {
      const { code, stderr } = await agent("--", "no-such-program");
      expect({ code, stderr }).to.deep.equal({
        code: 127,
        stderr: "strongroom: no-such-program: the command is not found\n",
      });
    });

    it("agent run reports secrets without a bound host, and refuses a URL as host", async () => {
      const { code, stderr } = await strongroom("agent", "run", "--no-sandbox", "--use", "none/", "--", "true");
      expect(stderr).to.contain("--use none/: no secret there is bound to a host: bind one with  strongroom use add");
      expect(code).to.equal(4);
      const refused = await agent("--allow-host", "https://a.test/", "--", "true");
      expect(refused).to.include({ code: 2 });
      expect(refused.stderr).to.contain("--allow-host must be a host name, without scheme or port\n");
    });

    it("agent run works with Python, wget and Perl, which use different variables", async () => {
      const { upstream } = rig();
      const url = `https://localhost:${upstream.port}`;
      const python = `import urllib.request; print(urllib.request.urlopen("${url}/py").read().decode(), end="")`;
      const perl = `print "$_=$ENV{$_}\n" for "PERL_LWP_ENV_PROXY"; print -s $ENV{PERL_LWP_SSL_CA_FILE} ? "has CA\n" : ""`;
      const script = `python3 -c '${python}'; perl -e '${perl}'; ! command -v wget >&2 || wget -q -t 1 -O - ${url}/wget`;
      const { stdout, stderr } = await agent("-q", "--", "sh", "-c", script);
      const wget = stderr.includes("/wget") ? "GET /wget 0\n" : "";
      expect(stdout, stderr).to.equal(`GET /py 0\nPERL_LWP_ENV_PROXY=1\nhas CA\n${wget}`);
    });

    it("agent run adds its authority to each variable's trusted certificates", async () => {
      const { server } = rig();
      const directory = temporaryDirectory();
      const ca = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
      const file = (name: string, text: string) => {
        writeFileSync(join(directory, name), text);
        return join(directory, name);
      };
      mkdirSync(join(directory, "hashed"));
      file("hashed/0a1b2c3d.0", ca("Directory"));
      const own = {
        NODE_EXTRA_CA_CERTS: file("node", ca("Node")),
        SSL_CERT_FILE: file("openssl", `-----BEGIN PRIVATE KEY-----\nKey\n-----END PRIVATE KEY-----\n${ca("OpenSSL")}`),
        SSL_CERT_DIR: join(directory, "hashed"),
        CURL_CA_BUNDLE: file("curl", ca("Curl")),
        npm_config_cafile: file("npm", ca("Npm")),
        GIT_SSL_CAINFO: join(directory, "missing"),
        WGETRC: file("wgetrc", `tries = 3\nca_certificate = ${file("wget", ca("Wget"))}\n`),
      };
      const shown = Object.keys(own).filter((name) => name !== "SSL_CERT_DIR");
      const names = [...shown, "REQUESTS_CA_BUNDLE", "PIP_CERT"];
      const print = names.map((name) => `echo "=${name}"; cat "$${name}"`).join("; ");
      const wget = `echo "=wget"; cat "$(sed -n 's/^ca_certificate = //p' "$WGETRC" | tail -n 1)"`;
      const command = ["agent", "run", "-q", "--no-sandbox", "--use", "app/", "--", "sh", "-c", `${print}; ${wget}`];
      const home = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
      const { stdout, stderr } = await run(command, { ...home, ...own });
      const found = stdout.split(/^=/m).map((text) => {
        const [name = ""] = text.split("\n", 1);
        const kept = ["Node", "OpenSSL", "Directory", "Curl", "Npm", "Wget", "Key"].filter((one) =>
          text.includes(`\n${one}\n`),
        );
        return [name, kept, /\n[\w+/=]{64}\n/.test(text)];
      });
      expect(Object.fromEntries(found.map(([name, ...rest]) => [name, rest]))).to.deep.equal({
        "": [[], false],
        NODE_EXTRA_CA_CERTS: [["Node"], true],
        SSL_CERT_FILE: [["OpenSSL", "Directory"], true],
        CURL_CA_BUNDLE: [["Curl"], true],
        npm_config_cafile: [["Npm"], true],
        GIT_SSL_CAINFO: [["OpenSSL", "Directory"], true],
        WGETRC: [[], false],
        REQUESTS_CA_BUNDLE: [["Curl"], true],
        PIP_CERT: [["OpenSSL", "Directory"], true],
        wget: [["Wget"], true],
      });
      expect(stderr).to.contain("warning: GIT_SSL_CAINFO names no readable certificate: the default roots are used\n");
    });
  });

  describe("approvals of agent run", () => {
    before(async () => {
      const { server, upstream } = rig();
      await mustPut(server, "asked/key", { value });
      const use = { host: "localhost", port: upstream.port, private: true, ask: "session" };
      mustSucceed(await send(server, { method: "PUT", path: "/v1/uses/asked/key", body: use }));
    });

    it("an approval for the session lets later requests continue without a question", async () => {
      const { server, upstream } = rig();
      const url = `https://localhost:${upstream.port}`;
      const running = withAsked("sh", "-c", `curl -sS ${url}/1?secret=query; curl -sS ${url}/2`);
      const approval = await firstApproval();
      expect(approval).to.include({ path: "asked/key", host: "localhost", method: "GET", target: "/1" });
      mustSucceed(
        await send(server, {
          method: "POST",
          path: `/v1/approvals/${approval["id"]}`,
          body: { approve: true, for: "session" },
        }),
      );
      expect((await running).stdout).to.equal("GET /1?secret=query 0\nGET /2 0\n");
    });

    it("a denied approval refuses the request", async () => {
      const { server, upstream } = rig();
      const running = withAsked("curl", "-sS", `https://localhost:${upstream.port}/no`);
      const { id } = await firstApproval();
      mustSucceed(await send(server, { method: "POST", path: `/v1/approvals/${id}`, body: { approve: false } }));
      expect((await running).stdout).to.contain("not approved");
      expect(upstream.seen.some(({ url }) => url === "/no")).to.equal(false);
    });

    it("approve ignores keys that were typed before the question", async function () {
      needs(this, hasPython(), "Python");
      const { server, upstream } = rig();
      const url = `https://localhost:${upstream.port}/early`;
      const running = withAsked("curl", "-sS", url);
      await firstApproval();
      const home = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
      const { code, shown } = await runOnTerminal(
        ["approve", "--once"],
        [
          { question: "", keys: "y\r", isEarly: true },
          { question: "[n]o: ", keys: "n\r" },
        ],
        home,
      );
      expect(code, shown).to.equal(0);
      const [, facts = ""] = shown.split("A request waits for approval:");
      expect(facts).to.match(
        /^\r\n {2}host +localhost\r\n {2}port +\d+\r\n {2}scheme +https\r\n {2}method +GET\r\n {2}path +\/early\r\n {2}query +\(not given\)\r\n {2}secret +asked\/key\r\n {2}token +agent-\w+\r\n {2}program +pid \d+, curl\r\n {2}since /,
      );
      expect((await running).stdout).to.contain("not approved");
      expect(upstream.seen.some(({ url: seen }) => seen === "/early")).to.equal(false);
      return undefined;
    });

    /** Runs a program with the secret whose uses must be approved. */
    function withAsked(...command: readonly string[]) {
      return strongroom("agent", "run", "-q", "--no-sandbox", "--use", "asked/key", "--", ...command);
    }

    async function firstApproval(): Promise<Record<string, unknown>> {
      for (;;) {
        const { approvals } = mustSucceed(await send(rig().server, { path: "/v1/approvals" })) as {
          readonly approvals: Record<string, unknown>[];
        };
        if (approvals[0] !== undefined) return approvals[0];
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  });
});
