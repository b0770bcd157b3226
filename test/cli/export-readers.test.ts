/**
 * The output of `export`, read by other programs' parsers: those of docker compose and `docker run`, godotenv and python-dotenv.
 * `npm run test:long -- imports` fetches those of Go from its module proxy. The dotenv of npm and shells are in export.test.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { onlyWith } from "../support/needs.js";
import { strongroom } from "./run-command.js";

/** Without a backslash before another one and without `${`, which python-dotenv reads in any quotes. */
const values: Readonly<Record<string, string>> = {
  EMPTY: "",
  PLAIN: "s3cr3t/+=:@%,.-_",
  SPACES: "  around  ",
  PEM: "-----BEGIN X-----\nabc\n-----END X-----\n",
  APOSTROPHE: "it's",
  QUOTES: 'say "hi"',
  HASH: "a # b#c",
  UNICODE: "zoë \u{1F511}",
  BACKSLASH: "C:\\dir\\n",
  COMMAND: "$(echo x) `echo y` $HOME",
  JSON: '{"a": "b\\n"}',
  PUNCTUATION: "a;b&c|d !e ~ *",
};
const onlyInGo: Readonly<Record<string, string>> = { SHARE: "\\\\host\\share", BRACES: `\${HOME}` };

const goProgram = `package main

import (
	"encoding/json"
	"os"
	"strings"

	compose "github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/docker/cli/pkg/kvfile"
	"github.com/joho/godotenv"
)

func main() {
	text, _ := os.ReadFile(os.Args[2])
	found := map[string]string{}
	var err error
	switch os.Args[1] {
	case "compose":
		found, err = compose.UnmarshalBytesWithLookup(text, nil)
	case "godotenv":
		found, err = godotenv.Unmarshal(string(text))
	case "docker":
		var lines []string
		lines, err = kvfile.Parse(os.Args[2], nil)
		for _, line := range lines {
			name, value, _ := strings.Cut(line, "=")
			found[name] = value
		}
	}
	if err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}
`;

const modules = [
  "github.com/compose-spec/compose-go/v2/dotenv@v2.1.0",
  "github.com/docker/cli/pkg/kvfile@v28.0.0+incompatible",
  "github.com/joho/godotenv@v1.5.1",
];

const pythonProgram = "import dotenv, json, sys; print(json.dumps(dotenv.dotenv_values(sys.argv[1])))";

describe("export, read by other programs", () => {
  const server = shareLocalServer({}, async (shared) => {
    await mustInit(shared);
    for (const [name, value] of Object.entries(values)) await mustPut(shared, `both/${name}`, { value });
    for (const [name, value] of Object.entries({ ...values, ...onlyInGo }))
      await mustPut(shared, `go/${name}`, { value });
  });
  const itWithReaders = onlyWith("STRONGROOM_READERS");

  async function exported(format: string, prefix: string): Promise<string> {
    const file = join(temporaryDirectory(), "exported");
    const args = ["export", "--format", format, "--plaintext", "--prefix", prefix, "-o", file];
    const { code, stderr } = await strongroom(server(), args);
    expect(code, stderr).to.equal(0);
    return file;
  }

  /** Builds the program of Go's parsers; null without Go, or without its module proxy. */
  function goReader(): string | null {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, "go.mod"), "module readers\n\ngo 1.23\n");
    writeFileSync(join(cwd, "main.go"), goProgram);
    const commands = [
      ["get", ...modules],
      ["build", "-o", "readers", "."],
    ];
    const isBuilt = commands.every((args) => spawnSync("go", args, { cwd, stdio: "ignore" }).status === 0);
    return isBuilt ? join(cwd, "readers") : null;
  }

  function read(program: string, args: readonly string[]): Record<string, string> {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
    expect(status, stderr).to.equal(0);
    return JSON.parse(stdout) as Record<string, string>;
  }

  for (const parser of ["compose", "godotenv"]) {
    itWithReaders(`dotenv: ${parser} reads every value unchanged`, async function (this: Mocha.Context) {
      const reader = goReader();
      needs(this, reader !== null, "go and its module proxy");
      const found = read(reader, [parser, await exported("dotenv", "go/")]);
      expect(found).to.deep.equal({ ...values, ...onlyInGo });
    });
  }

  itWithReaders("dotenv: docker run reads values without quotes unchanged", async function (this: Mocha.Context) {
    const reader = goReader();
    needs(this, reader !== null, "go and its module proxy");
    await mustPut(server(), "docker/PLAIN", { value: values["PLAIN"] });
    await mustPut(server(), "docker/EMPTY", { value: "" });
    const found = read(reader, ["docker", await exported("dotenv", "docker/")]);
    expect(found).to.deep.equal({ PLAIN: values["PLAIN"], EMPTY: "" });
  });

  itWithReaders("dotenv: python-dotenv reads every value unchanged", async function (this: Mocha.Context) {
    needs(this, spawnSync("python3", ["-c", "import dotenv"]).status === 0, "python-dotenv");
    expect(read("python3", ["-c", pythonProgram, await exported("dotenv", "both/")])).to.deep.equal(values);
  });

  itWithReaders("json: Python reads every value unchanged", async function (this: Mocha.Context) {
    needs(this, spawnSync("python3", ["--version"]).status === 0, "python3");
    const program =
      "import json, sys; print(json.dumps({s['path'][3:]: s['value'] for s in json.load(open(sys.argv[1]))['secrets']}))";
    const found = read("python3", ["-c", program, await exported("json", "go/")]);
    expect(found).to.deep.equal({ ...values, ...onlyInGo });
  });

  for (const shell of ["sh", "dash", "bash", "zsh", "busybox"]) {
    itWithReaders(`shell and dotenv: ${shell} reads every value unchanged`, async function (this: Mocha.Context) {
      const args = shell === "busybox" ? ["sh"] : [];
      needs(this, spawnSync(shell, [...args, "-c", "true"]).status === 0, shell);
      for (const format of ["shell", "dotenv"]) {
        const file = await exported(format, "go/");
        const names = Object.keys({ ...values, ...onlyInGo });
        const script = `set -a; . '${file}'; exec env -0`;
        const { stdout } = spawnSync(shell, [...args, "-c", script], {
          encoding: "utf8",
          env: { PATH: process.env["PATH"] },
        });
        const found = new Map(
          stdout.split("\0").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
        );
        expect(Object.fromEntries(names.map((name) => [name, found.get(name)]))).to.deep.equal({
          ...values,
          ...onlyInGo,
        });
      }
    });
  }
});
