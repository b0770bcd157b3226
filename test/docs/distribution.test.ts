/** The manual page, and the files for containers: read by the programs that they are for, where these are installed. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { parse } from "yaml";
import { commands } from "../../src/cli/command-table.js";
import { readManifest } from "../../src/manifest.js";
import { renderShare } from "../../tools/docs/share-files.js";
import { needs } from "../../tools/rig/needs.js";

function isInstalled(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

describe("the manual page", () => {
  let page = "";
  before(async () => {
    page = (await renderShare()).get("man/strongroom.1") ?? "";
  });

  it("the manual page has a part for each command, with its help, and none for hidden ones", () => {
    const parts = [...page.matchAll(/^\.SS strongroom (.+)\n\.nf\nusage: strongroom ([\w\\-]+)/gm)];
    const shown = commands.filter(({ hidden }) => hidden !== true).map(({ name }) => [name, name]);
    expect(parts.map(([, ...names]) => names.map((name) => name?.replaceAll("\\-", "-")))).to.deep.equal(shown);
  });

  it("groff reads the manual page without a warning, and shows the help as it is", function () {
    needs(this, isInstalled("groff", "--version"), "groff");
    const args = ["-man", "-Tutf8", "-ww", "-P-c", "-rLL=100n"];
    const { stdout, stderr } = spawnSync("groff", args, { input: page, encoding: "utf8" });
    expect(stderr).to.equal("");
    expect(stdout).to.contain("usage: strongroom get").and.contain("{{ strongroom://app/db/password }}");
  });
});

describe("the system's unit", () => {
  it("systemd-analyze gives the unit an exposure of at most 2.0", function () {
    needs(this, isInstalled("systemd-analyze", "--version"), "systemd-analyze");
    const args = ["security", "--offline=yes", "--no-pager", "packaging/debian/strongroom.service"];
    const { stdout } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
    expect(Number(/exposure level for \S+: (\S+)/.exec(stdout)?.[1]), stdout).to.be.at.most(2);
  });

  it("the unit starts the command that the .deb installs", () => {
    const unit = readFileSync("packaging/debian/strongroom.service", "utf8");
    expect(unit).to.contain("\nExecStart=/usr/lib/strongroom/bin/strongroom serve\n");
  });
});

describe("recipes of other packagers", () => {
  const rows: readonly (readonly [program: string, version: string, args: readonly string[]])[] = [
    ["ruby", "--version", ["-c", "packaging/homebrew/strongroom.rb"]],
    ["nix-instantiate", "--version", ["--parse", "packaging/nix/flake.nix"]],
    ["shellcheck", "--version", ["packaging/aur/PKGBUILD"]],
  ];
  for (const [program, version, args] of rows) {
    it(`${program} accepts ${args.at(-1)}`, function () {
      needs(this, isInstalled(program, version), program);
      const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
      expect(status, `${stdout}${stderr}`).to.equal(0);
    });
  }

  it("the recipes name the version of the program", () => {
    const { version } = readManifest();
    for (const file of ["homebrew/strongroom.rb", "nix/flake.nix", "aur/PKGBUILD"]) {
      expect(readFileSync(`packaging/${file}`, "utf8"), file).to.contain(version);
    }
  });
});

describe("the files for containers", () => {
  const steps = readFileSync("packaging/container/Containerfile", "utf8").replace(/\\\n/g, "").split("\n");
  const instructions = steps.filter((step) => step !== "" && !step.startsWith("#"));
  const lastArgument = (name: string) =>
    instructions
      .filter((step) => step.startsWith(`${name} `))
      .at(-1)
      ?.slice(name.length + 1);

  it("the image builds the package, and serves without root in a home that only its user can read", () => {
    const known = /^(?:ARG|FROM|WORKDIR|COPY|RUN|USER|ENV|VOLUME|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) \S/;
    expect(instructions.filter((step) => !known.test(step))).to.deep.equal([]);
    expect(lastArgument("USER")).to.equal("1000:1000");
    expect(JSON.parse(lastArgument("ENTRYPOINT") ?? "")).to.deep.equal(["strongroom"]);
    expect(JSON.parse(lastArgument("CMD") ?? "")).to.deep.equal(["serve"]);
    expect(lastArgument("ENV")).to.contain(`STRONGROOM_HOME=${lastArgument("VOLUME")} `);
    expect(instructions.join("\n")).to.contain(`-m 0700 ${lastArgument("VOLUME")}`);
  });

  it("hadolint accepts the Containerfile", function () {
    needs(this, isInstalled("hadolint", "--version"), "hadolint");
    const { status, stdout } = spawnSync("hadolint", ["packaging/container/Containerfile"], { encoding: "utf8" });
    expect(status, stdout).to.equal(0);
  });

  it("compose.yaml runs the server on loopback only, with the least rights", () => {
    const { services, volumes } = parse(readFileSync("packaging/container/compose.yaml", "utf8"));
    const { strongroom } = services;
    expect(strongroom.build).to.deep.equal({ context: "../..", dockerfile: "packaging/container/Containerfile" });
    expect(strongroom.ports).to.deep.equal(["127.0.0.1:13100:13100"]);
    expect(strongroom).to.deep.include({ read_only: true, cap_drop: ["ALL"], ulimits: { core: 0 } });
    expect(strongroom.volumes).to.deep.equal([`vault:${lastArgument("VOLUME")}`]);
    expect(volumes).to.have.all.keys("vault");
  });

  it("podman builds the image", function () {
    this.timeout(600_000);
    needs(
      this,
      process.env["STRONGROOM_BUILD_IMAGE"] !== undefined && isInstalled("podman", "info"),
      "STRONGROOM_BUILD_IMAGE and podman",
    );
    const { status, stderr } = spawnSync(
      "podman",
      ["build", "--tag", "strongroom-test", "-f", "packaging/container/Containerfile", "."],
      { encoding: "utf8" },
    );
    expect(status, stderr).to.equal(0);
  });
});
