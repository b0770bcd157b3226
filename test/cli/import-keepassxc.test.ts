/**
 * Exports of KeePassXC, imported with KeePassXC as the judge: its codes, and the values of its references. Skipped without
 * keepassxc-cli.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { onlyWith } from "../support/needs.js";
import { strongroom } from "./run-command.js";

const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const id = Buffer.alloc(16, 0xcd);

/** Seeds in the spellings that KeePassXC reads, and passwords that refer to other fields. */
const entries: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Settings: { "TOTP Seed": seed, "TOTP Settings": "60;8" },
  Steam: { "TOTP Seed": seed, "TOTP Settings": "30;S" },
  Sha512: { otp: `otpauth://totp/x?secret=${seed}&algorithm=SHA512&digits=7` },
  KeeOtp: { otp: `key=${seed}&size=8&step=60` },
  Encoder: { otp: `otpauth://totp/x?secret=${seed}&encoder=steam` },
  Main: { UserName: "ann", Password: "p & <1>", URL: "https://main.example" },
  ById: { Password: `{REF:P@I:${id.toString("hex").toUpperCase()}}` },
  ByTitle: { Password: "{REF:U@T:Main}-{REF:P@T:Main}" },
  Own: { UserName: "bob", Password: "{USERNAME}!" },
  Braces: { Password: "{not} {a placeholder}" },
};
const withSeed = ["Settings", "Steam", "Sha512", "KeeOtp", "Encoder"];
const withPassword = ["Main", "ById", "ByTitle", "Own", "Braces"];

function document(): string {
  const text = (value: string) => value.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const rows = Object.entries(entries).map(([title, strings]) => {
    const all = Object.entries({ Title: title, ...strings });
    const fields = all.map(([key, value]) => `<String><Key>${key}</Key><Value>${text(value)}</Value></String>`);
    return `<Entry>${title === "Main" ? `<UUID>${id.toString("base64")}</UUID>` : ""}${fields.join("")}</Entry>`;
  });
  const group = `<Group><UUID>AAAAAAAAAAAAAAAAAAAAAQ==</UUID><Name>Root</Name>${rows.join("")}</Group>`;
  return `<KeePassFile><Meta><Generator>x</Generator></Meta><Root>${group}</Root></KeePassFile>`;
}

describe("import of what KeePassXC writes", () => {
  const server = shareLocalServer({}, mustInit);
  const itWithReaders = onlyWith("STRONGROOM_READERS");

  function keepassxc(args: readonly string[], passwords = 1): string {
    const { status, stdout, stderr } = spawnSync("keepassxc-cli", args, {
      input: "pw\n".repeat(passwords),
      encoding: "utf8",
    });
    expect(status, stderr).to.equal(0);
    return stdout;
  }

  /** Makes a database of the entries, and has KeePassXC export it. */
  function exportedAs(format: "xml" | "csv"): { readonly database: string; readonly exported: string } {
    const directory = temporaryDirectory();
    const [source, database] = [join(directory, "x.xml"), join(directory, "x.kdbx")];
    const exported = join(directory, `y.${format}`);
    writeFileSync(source, document());
    keepassxc(["import", "-q", "-p", source, database], 2);
    writeFileSync(exported, keepassxc(["export", "-q", "-f", format, database]));
    return { database, exported };
  }

  async function mustAgree(database: string, title: string): Promise<void> {
    const theirs = keepassxc(["show", "-q", "-t", database, title]).trim();
    const { stdout } = await strongroom(server(), ["otp", `xml/${title}`]);
    const later = keepassxc(["show", "-q", "-t", database, title]).trim(); // a period may end between the two
    expect([theirs, later], title).to.include(stdout.trim());
  }

  function needsKeePassXC(test: Mocha.Context): void {
    needs(test, spawnSync("keepassxc-cli", ["--version"]).status === 0, "keepassxc-cli");
  }

  itWithReaders("gives KeePassXC's codes, and its values for references", async function (this: Mocha.Context) {
    needsKeePassXC(this);
    const { database, exported } = exportedAs("xml");
    expect(readFileSync(exported, "utf8")).to.contain("{REF:");
    const { code, stderr } = await strongroom(server(), ["import", "--prefix", "xml", exported]);
    expect(code, stderr).to.equal(0);
    for (const title of withPassword) {
      const wanted = keepassxc(["show", "-q", "-s", "-a", "Password", database, title]);
      expect((await strongroom(server(), ["get", `xml/${title}/password`])).stdout, title).to.equal(wanted.trimEnd());
    }
    for (const title of withSeed) await mustAgree(database, title);
  });

  itWithReaders("imports its CSV, with every seed and password", async function (this: Mocha.Context) {
    needsKeePassXC(this);
    const { exported } = exportedAs("csv");
    const { code, stdout, stderr } = await strongroom(server(), ["import", "--prefix", "csv", exported]);
    expect(stderr).to.contain("refers to another entry: export the XML");
    expect(code, stdout + stderr).to.equal(2);
    for (const title of withSeed) {
      expect((await strongroom(server(), ["otp", `csv/${title}`])).stdout).to.match(/^[\dA-Z]{5,8}$/);
    }
    expect((await strongroom(server(), ["get", "csv/Main/password"])).stdout).to.equal("p & <1>");
  });
});
