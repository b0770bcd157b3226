/** The plugin of age by its protocol: what it sends to a client that says what age says, unlocked, locked and misled. */
import { randomBytes } from "node:crypto";
import { PassThrough } from "node:stream";
import { bech32 } from "@scure/base";
import { expect } from "chai";
import fc from "fast-check";
import { runCommandLine } from "../../../src/cli/command-line.js";
import { identityText } from "../../../src/extras/age/identity.js";
import { fromBase64, MalformedStanza, readStanzas, type Stanza, stanzaText } from "../../../src/extras/age/stanzas.js";
import { environment } from "../../../tools/rig/process.js";
import { shareTestServer } from "../../../tools/rig/server.js";
import { stringIo } from "../../../tools/rig/string-io.js";
import { mustCreateToken, mustInit, mustLock, mustSucceed, mustUnlock, send } from "../../../tools/rig/test-client.js";
import { must, serverEnvironment, strongroom } from "../../cli/command-rows.js";
import { wrapFileKey } from "../../support/age-stanza.js";

type Said = { readonly command: string; readonly text: string };
/** Returns the client's response to a stanza of the plugin, as its arguments. */
type Answer = (stanza: Stanza) => Promise<readonly string[]> | readonly string[];

describe("age-plugin-strongroom", () => {
  const server = shareTestServer({}, mustInit);
  const here = () => serverEnvironment(server());
  const recipients = new Map<string, string>();
  before(async () => {
    for (const name of ["age/me", "age/other", "böx/ü"]) await makeKey(name);
    mustSucceed(await send(server(), { method: "POST", path: "/v1/transit/keys/age/aes", body: {} }));
  });
  afterEach(() => mustUnlock(server()));

  async function makeKey(name: string): Promise<void> {
    const path = `/v1/transit/keys/${encodeURIComponent(name)}`;
    mustSucceed(await send(server(), { method: "POST", path, body: { type: "x25519" } }));
    recipients.set(name, (await must(here(), ["age", "recipient", name])).trim());
  }

  const identity = async (name: string) => (await must(here(), ["age", "identity", name])).trim().split("\n")[1] ?? "";
  const everyKey = bech32.encode("age-plugin-strongroom-", []).toUpperCase();

  /** An X25519 stanza of a file, as age passes it on. */
  function sealed(index: number, name: string, fileKey: Uint8Array, ...more: readonly string[]): string {
    const { share, wrapped } = wrapFileKey(recipients.get(name) ?? "", fileKey);
    const args = ["recipient-stanza", String(index), "X25519", share.replace("=", ""), ...more];
    return stanzaText(args, Buffer.from(wrapped, "base64"));
  }

  /** Runs the plugin with what the client says first; returns what the plugin said in the second phase, and its end. */
  async function speak(first: readonly string[], answer: Answer = () => ["ok"], more: Record<string, string> = {}) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const io = stringIo({ env: environment({ ...here(), ...more }), stdin: input, stdout: output });
    const ended = runCommandLine(["age-plugin", "--age-plugin=identity-v1"], io).finally(() => output.end());
    input.write(`${first.join("")}${stanzaText(["done"], Buffer.alloc(0))}`);
    const said: Said[] = [];
    for await (const stanza of readStanzas(output)) {
      said.push({ command: stanza.args.join(" "), text: stanza.body.toString("latin1") });
      if (stanza.args[0] !== "done") input.write(stanzaText(await answer(stanza), Buffer.alloc(0)));
    }
    await ended;
    return { said, code: io.exitCode, stderr: io.printed().stderr };
  }

  const adding = (text: string) => stanzaText(["add-identity", text], Buffer.alloc(0));
  const opened = (index: number, fileKey: Uint8Array) => ({
    command: `file-key ${index}`,
    text: Buffer.from(fileKey).toString("latin1"),
  });
  const done = { command: "done", text: "" };

  it("the plugin unwraps files of a named key, and of any key without a name", async () => {
    const [a, b] = [randomBytes(16), randomBytes(16)];
    const grease = stanzaText(["grease-x", "~"], randomBytes(100));
    const foreign = stanzaText(["recipient-stanza", "0", "ssh-ed25519", "abc", "def"], randomBytes(48));
    const files = [
      grease,
      foreign,
      sealed(0, "age/other", randomBytes(16)),
      sealed(0, "age/me", a),
      sealed(1, "böx/ü", b),
    ];
    const { said, code, stderr } = await speak([adding(await identity("age/me")), ...files]);
    expect({ said, code, stderr }).to.deep.equal({ said: [opened(0, a), done], code: 0, stderr: "" });
    expect((await speak([adding(await identity("böx/ü")), ...files])).said).to.deep.equal([opened(1, b), done]);
    const both = await speak([adding(everyKey), ...files]);
    expect(both.said.map(({ command }) => command)).to.have.members(["file-key 0", "file-key 1", "done"]);
  });

  it("X25519 stanzas with other arguments or a body of another length are ignored", async () => {
    const fileKey = randomBytes(16);
    const good = sealed(0, "age/me", fileKey);
    const [head = "", body = ""] = good.split("\n");
    const bad = [
      sealed(0, "age/me", fileKey, "more"),
      `${head}=\n${body}\n`,
      good.replace("X25519", "x25519"),
      stanzaText(head.split(" ").slice(1), randomBytes(33)),
      stanzaText(["recipient-stanza", "0", "X25519"], randomBytes(32)),
    ];
    expect((await speak([adding(everyKey), ...bad])).said).to.deep.equal([done]);
    expect((await speak([adding(everyKey), ...bad, good])).said).to.deep.equal([opened(0, fileKey), done]);
  });

  it("an unusable identity is reported, unless all files open without it", async () => {
    const fileKey = randomBytes(16);
    await makeKey("age/gone");
    const gone = adding(await identity("age/gone"));
    await must(here(), ["transit", "config", "age/gone", "--deletion-allowed"]);
    await must(here(), ["transit", "rm", "age/gone", "-y"]);
    const problem = { command: "error identity 0", text: "there is no transit key age/gone" };
    expect((await speak([gone, sealed(0, "age/other", fileKey)])).said).to.deep.equal([problem, done]);
    const me = adding(await identity("age/me"));
    expect((await speak([gone, me, sealed(0, "age/me", fileKey)])).said).to.deep.equal([opened(0, fileKey), done]);
    const other = adding(identityText("../x"));
    expect((await speak([other, me, sealed(0, "age/me", fileKey)])).said).to.deep.equal([opened(0, fileKey), done]);
    const { said } = await speak([other, sealed(0, "age/me", fileKey)]);
    expect(said.map(({ command }) => command)).to.deep.equal(["error identity 0", "done"]);
    const damaged = await speak([adding("AGE-PLUGIN-STRONGROOM-1QQQQQQ"), sealed(0, "age/me", fileKey)]);
    expect(damaged.said[0]?.command).to.equal("error identity 0");
  });

  it("a token without the scope, and a missing server, are reported", async () => {
    const first = [adding(everyKey), sealed(0, "age/me", randomBytes(16))];
    const { token } = await mustCreateToken(server(), { name: "signer", can: ["sign"] });
    const { said } = await speak(first, () => ["ok"], { STRONGROOM_TOKEN: token });
    expect(said.map(({ command }) => command))
      .to.include("error identity 0")
      .and.include("done");
    const down = await speak(first, () => ["ok"], { STRONGROOM_ADDRESS: "https://127.0.0.1:9" });
    expect(down.said.map(({ command }) => command)).to.deep.equal(["error internal", "done"]);
    expect(down.said[0]?.text).to.match(/127\.0\.0\.1:9/);
  });

  it("the plugin asks to continue while the vault is locked, and opens the file after an unlock", async () => {
    const fileKey = randomBytes(16);
    const first = [adding(await identity("age/me")), sealed(0, "age/me", fileKey)];
    await mustLock(server());
    const { said } = await speak(first, async ({ args, body }) => {
      if (args[0] !== "confirm") return ["ok"];
      expect(args.slice(1).map((text) => String(fromBase64(text)))).to.deep.equal(["The vault is unlocked", "Cancel"]);
      expect(String(body)).to.contain("strongroom unlock");
      await mustUnlock(server());
      return ["ok", "yes"];
    });
    expect(said.slice(1)).to.deep.equal([opened(0, fileKey), done]);
  });

  const refusals: readonly (readonly [what: string, response: readonly string[], asked: number])[] = [
    ["the user cancels", ["ok", "no"], 1],
    ["age cannot ask", ["fail"], 1],
    ["age knows no questions", ["unsupported"], 1],
    ["the user says yes again and again", ["ok", "yes"], 3],
  ];
  for (const [what, response, asked] of refusals) {
    it(`a locked vault ends decryption with the reason while ${what}`, async () => {
      const first = [adding(everyKey), sealed(0, "age/me", randomBytes(16))];
      await mustLock(server());
      const { said, code } = await speak(first, ({ args }) => (args[0] === "confirm" ? response : ["ok"]));
      const commands = said.map(({ command }) =>
        command
          .split(" ")
          .slice(0, command.startsWith("confirm") ? 1 : 2)
          .join(" "),
      );
      expect(commands).to.deep.equal([...Array<string>(asked).fill("confirm"), "error internal", "done"]);
      expect(said.at(-2)?.text).to.match(/^the vault is locked/);
      expect(code).to.equal(0);
    });
  }

  it("other protocols, invalid input and a start by hand are refused", async () => {
    const rows: readonly (readonly [args: readonly string[], says: RegExp])[] = [
      [["--age-plugin=recipient-v1"], /decrypts only: encrypt with -r/],
      [["--age-plugin=identity-v1"], /not age's plugin protocol/],
      [[], /strongroom age --help/],
    ];
    for (const [args, says] of rows) {
      const { code, stderr } = await strongroom(here(), ["age-plugin", ...args], "hello\n");
      expect([code, says.test(stderr)], stderr).to.deep.equal([2, true]);
    }
  });

  it("age identity refuses a key of another type", async () => {
    const { code, stderr } = await strongroom(here(), ["age", "identity", "age/aes"]);
    expect([code, stderr]).to.deep.equal([
      2,
      "strongroom: age/aes is of type aes256-gcm96: age uses a key of type x25519\n",
    ]);
  });
});

describe("stanzas of age's plugins", () => {
  const read = async (...chunks: readonly (string | Uint8Array)[]) => {
    const found: Stanza[] = [];
    const input = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    })();
    for await (const stanza of readStanzas(input)) found.push(stanza);
    return found;
  };

  it("stanzas survive a round trip, wherever the input is cut", async () => {
    const argument = fc.stringMatching(/^[!-~]{1,20}$/);
    const stanza = fc.tuple(fc.array(argument, { minLength: 1, maxLength: 4 }), fc.uint8Array({ maxLength: 200 }));
    await fc.assert(
      fc.asyncProperty(fc.array(stanza, { maxLength: 4 }), fc.nat(), async (stanzas, cut) => {
        const text = Buffer.from(stanzas.map(([args, body]) => stanzaText(args, body)).join(""));
        const at = text.length === 0 ? 0 : cut % text.length;
        const back = await read(text.subarray(0, at), text.subarray(at));
        expect(back).to.deep.equal(stanzas.map(([args, body]) => ({ args, body: Buffer.from(body) })));
      }),
    );
  });

  it("the body of a stanza has lines of 64 characters and a shorter last line", () => {
    for (const length of [0, 1, 47, 48, 49, 96, 1000]) {
      const lines = stanzaText(["x"], randomBytes(length)).split("\n").slice(1, -1);
      expect(lines.slice(0, -1).every((line) => line.length === 64)).to.equal(true);
      expect(lines.at(-1)?.length).to.be.below(64);
    }
  });

  const malformed: Readonly<Record<string, string>> = {
    "a missing arrow": "add-identity x\n\n",
    "no arguments": "->\n\n",
    "an empty argument": "-> a  b\n\n",
    "an argument with another character": "-> a \u007f\n\n",
    "base64 with padding": "-> a\nYQ==\n",
    "base64 with bits after the last byte": "-> a\nYR\n",
    "a long line in the body": `-> a\n${"A".repeat(68)}\n`,
    "a missing short line": `-> a\n${"A".repeat(64)}\n`,
    "a missing end of line": "-> a\nYQ",
    "an endless line": `-> ${"a".repeat(20_000)}`,
    "an endless body": `-> a\n${`${"A".repeat(64)}\n`.repeat(17_000)}`,
  };
  for (const [what, text] of Object.entries(malformed)) {
    it(`a stanza with ${what} is refused`, async () => {
      expect(await read(text).catch((error: unknown) => error)).to.be.instanceOf(MalformedStanza);
    });
  }
});
