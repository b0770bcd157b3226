/** `--copy`, with fake clipboard programs that keep the content in a file. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom } from "./command-rows.js";

type Fake = { readonly environment: Readonly<Record<string, string>>; readonly held: string; readonly log: string };

/** Each program logs its arguments and its whole environment. */
function fakeClipboard(programs: readonly string[], display: Readonly<Record<string, string>>): Fake {
  const directory = temporaryDirectory();
  const [held, log] = [join(directory, "held"), join(directory, "log")];
  for (const program of programs) {
    const script = `#!/bin/sh
PATH=/usr/bin:/bin
{ echo "$0 $*"; env; } >> ${log}
case "$0 $*" in
  *paste*|*-out*|*--output*|*Get-Clipboard*) cat ${held} ;;
  *--clear*) : > ${held} ;;
  *) cat > ${held}.new; cat ${held}.new > ${held} ;;
esac
`;
    writeFileSync(join(directory, program), script, { mode: 0o755 });
  }
  return { environment: { PATH: directory, ...display }, held, log };
}

const systems: readonly (readonly [readonly string[], Readonly<Record<string, string>>])[] = [
  [["wl-copy", "wl-paste"], { WAYLAND_DISPLAY: "wayland-0" }],
  [["xclip"], { DISPLAY: ":0" }],
  [["xsel"], { DISPLAY: ":0" }],
  [["pbcopy", "pbpaste"], {}],
  [["clip.exe", "powershell.exe"], {}],
];

describe("the clipboard", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "s3cr3t-canary");
  });
  const here = ({ environment }: Fake) => ({ STRONGROOM_HOME: server().home, ...environment });

  it("the clipboard gets the value only through a pipe, and is cleared, with the programs of every system", async () => {
    await Promise.all(systems.map(copyAndWait));
  });

  async function copyAndWait([programs, display]: (typeof systems)[number]): Promise<void> {
    const fake = fakeClipboard(programs, display);
    const said = await must(here(fake), ["get", "app/key", "-c", "--clear-after", "2s"]);
    expect(said, programs[0]).to.equal("app/key is in the clipboard for 2 s\n");
    expect(readFileSync(fake.held, "utf8"), programs[0]).to.equal("s3cr3t-canary");
    while (readFileSync(fake.held).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(readFileSync(fake.log, "utf8"), programs[0]).not.to.contain("canary");
  }

  it("a wl-copy that can mark its content gets --sensitive", async () => {
    for (const can of [true, false]) {
      const fake = fakeClipboard(["wl-copy", "wl-paste"], { WAYLAND_DISPLAY: "wayland-0" });
      const help = can ? "-s, --sensitive  Hint that the content is sensitive." : "unknown option";
      const script = `#!/bin/sh\nPATH=/usr/bin:/bin\n[ "$1" != --help ] || { echo "${help}"; exit; }\necho "copied $*" >> ${fake.log}\ncat > ${fake.held}\n`;
      writeFileSync(join(fake.environment["PATH"] ?? "", "wl-copy"), script, { mode: 0o755 });
      await must(here(fake), ["get", "app/key", "-c", "--clear-after", "0"]);
      expect(readFileSync(fake.log, "utf8")).to.equal(can ? "copied --sensitive\n" : "copied \n");
      expect(readFileSync(fake.held, "utf8")).to.equal("s3cr3t-canary");
    }
  });

  it("every command that copies marks its content, whatever the value, also with a wl-copy without help", async () => {
    await mustPut(server(), "mark/lines", "-----BEGIN X-----\r\na\n-----END X-----\n");
    await mustPut(server(), "mark/totp", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    const fake = fakeClipboard(["wl-copy", "wl-paste"], { WAYLAND_DISPLAY: "wayland-0" });
    const script = `#!/bin/sh\nPATH=/usr/bin:/bin\n[ "$1" != --help ] || { echo --sensitive; exit 1; }\necho "$*" >> ${fake.log}\ncat > ${fake.held}\n`;
    const program = join(fake.environment["PATH"] ?? "", "wl-copy");
    writeFileSync(program, script, { mode: 0o755 });
    for (const [args, held] of [
      [["get", "mark/lines"], /^-+BEGIN X-+\r\na\n-+END X-+\n$/],
      [["otp", "mark/totp"], /^\d{6}$/],
      [["generate", "mark/new"], /^.{8,}$/],
    ] as const) {
      await must(here(fake), [...args, "-c", "--clear-after", "0"]);
      expect(readFileSync(fake.held, "utf8"), args[0]).to.match(held);
    }
    expect(readFileSync(fake.log, "utf8")).to.equal("--sensitive\n".repeat(3));
    writeFileSync(program, script.replace("echo --sensitive; ", ""), { mode: 0o755 });
    await must(here(fake), ["get", "app/key", "-c", "--clear-after", "0"]);
    expect(readFileSync(fake.log, "utf8")).to.equal(`${"--sensitive\n".repeat(3)}\n`);
  });

  it("a clipboard that holds something else by then is not cleared", async () => {
    const fake = fakeClipboard(["xsel"], { DISPLAY: ":0" });
    await must(here(fake), ["get", "app/key", "-c", "--clear-after", "1s"]);
    writeFileSync(fake.held, "something else");
    const looked = () => readFileSync(fake.log, "utf8").includes("--output");
    while (!looked()) await new Promise((resolve) => setTimeout(resolve, 20));
    await new Promise((resolve) => setTimeout(resolve, 300)); // clearing would follow at once
    expect(readFileSync(fake.held, "utf8")).to.equal("something else");
    expect(readFileSync(fake.log, "utf8")).not.to.contain("--clear");
  });

  it("--clear-after 0 never clears the clipboard, and JSON reports it", async () => {
    const fake = fakeClipboard(["xsel"], { DISPLAY: ":0" });
    const said = await must(here(fake), ["get", "app/key", "-c", "--clear-after", "0", "--json"]);
    expect(JSON.parse(said)).to.deep.equal({ ok: true, path: "app/key", copied: true, clearedAfterSeconds: 0 });
  });

  it("the value that generate creates is copied", async () => {
    const fake = fakeClipboard(["xclip"], { DISPLAY: ":0" });
    expect(await must(here(fake), ["generate", "gen", "-c", "--clear-after", "0"])).to.contain("in the clipboard");
    expect(readFileSync(fake.held, "utf8")).to.equal((await mustGet(server(), "gen"))["value"]);
  });

  it("a copy without a display or with a failing program fails with a message and prints nothing", async () => {
    const fake = fakeClipboard(["xclip"], {});
    const hidden = await strongroom(here(fake), ["get", "app/key", "-c"]);
    expect(hidden).to.include({ code: 1, stdout: "" });
    writeFileSync(join(fake.environment["PATH"] ?? "", "xclip"), "#!/bin/sh\nexit 1\n");
    chmodSync(join(fake.environment["PATH"] ?? "", "xclip"), 0o755);
    const failed = await strongroom({ ...here(fake), DISPLAY: ":0" }, ["get", "app/key", "-c"]);
    expect(failed).to.include({ code: 1, stdout: "" });
    expect(failed.stderr).to.contain("xclip failed");
    const made = await strongroom({ ...here(fake), DISPLAY: ":0" }, ["generate", "gen/made", "-c"]);
    expect(made).to.include({ code: 1, stdout: "" });
    expect(made.stderr).to.contain("xclip failed").and.contain("gen/made is stored: show it with");
    expect(existsSync(fake.held)).to.equal(false);
  });

  /** A menu that takes the first line with this text, as if it was chosen, and logs what it was given. */
  function withMenu(fake: Fake, name: string, choice: string): Fake {
    const directory = fake.environment["PATH"] ?? "";
    const script = `#!/bin/sh\nPATH=/usr/bin:/bin\nenv >> ${fake.log}\ntee -a ${fake.log} | grep -m1 -- '${choice}'\n`;
    writeFileSync(join(directory, name), script, { mode: 0o755 });
    return fake;
  }
  const fakeX = () => fakeClipboard(["xsel"], { DISPLAY: ":0" });

  it("pick copies the value of the secret that its menu chose; the menu gets paths only", async () => {
    await mustPut(server(), "app/other", "other-canary");
    for (const menu of ["fzf", "rofi", "wofi", "dmenu"]) {
      const fake = withMenu(fakeX(), menu, "app/k");
      const said = await must(here(fake), ["pick", "--menu", menu, "--clear-after", "0"]);
      expect(said, menu).to.equal("app/key is in the clipboard\n");
      expect(readFileSync(fake.held, "utf8"), menu).to.equal("s3cr3t-canary");
      expect(readFileSync(fake.log, "utf8"), menu).to.contain("app/other").and.not.to.contain("canary");
    }
  });

  it("pick copies nothing when its menu chooses nothing, or something else", async () => {
    const none = withMenu(fakeX(), "rofi", "nowhere");
    expect((await strongroom(here(none), ["pick"])).code).to.equal(13);
    const typed = fakeX();
    writeFileSync(join(typed.environment["PATH"] ?? "", "dmenu"), "#!/bin/sh\necho app/typed\n", { mode: 0o755 });
    expect((await strongroom(here(typed), ["pick"])).code).to.equal(4);
    for (const fake of [none, typed]) expect(existsSync(fake.held)).to.equal(false);
  });

  it("pick without a menu program is refused with what to install", async () => {
    const { code, stderr } = await strongroom(here(fakeX()), ["pick"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("install fzf, rofi, wofi or dmenu");
  });
});
