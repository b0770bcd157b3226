/** The documents as a whole: length, tables, links, and names of files, scripts, settings, commands and benchmarks. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { Command } from "commander";
import { readOptions } from "../../bench/options.js";
import { scenarios } from "../../bench/scenarios/all.js";
import { workloads } from "../../bench/workloads.js";
import { commands } from "../../src/cli/command-table.js";
import { longForms } from "../long/long-forms.js";
import { anchorOf, blocksIn, checkedRows, documentFiles, headingsIn, linksIn } from "./document-files.js";
import { renderTables, tableNamesIn, withoutTables, withTables } from "./generated-tables.js";

const texts = new Map(documentFiles.map((file) => [file, readFileSync(file, "utf8")]));
const everything = [...texts.values()].join("\n");

function textOf(file: string): string {
  return texts.get(file) ?? "";
}

/** What stands between backquotes, and in fenced blocks. */
function codeIn(text: string): string[] {
  const spans = text.replace(/^```.*?^```$/gms, "").matchAll(/`([^`]+)`/g);
  return [...[...spans].map(([, span = ""]) => span), ...blocksIn(text).map(({ code }) => code)];
}

describe("the documents", () => {
  it("keep README within two screens of scrolling, and reach the first stored secret on the first", () => {
    const lines = textOf("README.md").trimEnd().split("\n");
    expect(lines).to.have.lengthOf.at.most(130);
    expect(lines.slice(0, 40).join("\n")).to.match(/^\$ strongroom put .*\n.*\n.* stored/m);
  });

  it("have the tables that follow from the code, each once (npm run docs)", async () => {
    const tables = await renderTables();
    for (const [file, text] of texts) expect(withTables(text, tables), file).to.equal(text);
    expect([...texts.values()].flatMap(tableNamesIn).sort()).to.deep.equal([...tables.keys()].sort());
  });

  it("have a row for each command", async () => {
    const table = (await renderTables()).get("commands");
    for (const { name, hidden } of commands) if (!hidden) expect(table).to.contain(`\`${name}\``);
  });

  it("have no other table that is not checked here", () => {
    const found = [...texts.values()].map(withoutTables).flatMap((text) => [...text.matchAll(/(.*)\n\|.*\n\| ?-/g)]);
    const marks = found.map(([, mark]) => mark).sort();
    expect(marks).to.deep.equal([
      "<!-- checked: promises -->",
      "<!-- checked: scale -->",
      "<!-- checked: scenarios -->",
      "<!-- checked: states -->",
      "<!-- checked: torture -->",
    ]);
  });

  it("are all reached from README", () => {
    const reached = new Set(["README.md"]);
    for (const file of reached)
      for (const { path } of linksIn(file, textOf(file))) if (texts.has(path)) reached.add(path);
    expect([...reached].sort()).to.deep.equal([...documentFiles].sort());
  });

  it("have links that lead somewhere", () => {
    for (const [file, text] of texts) {
      for (const { path, anchor } of linksIn(file, text)) {
        expect(existsSync(path), `${file}: ${path}`).to.equal(true);
        if (anchor !== null) expect(headingsIn(textOf(path)).map(anchorOf), file).to.include(anchor);
      }
    }
  });

  it("name files that exist", () => {
    const named = codeIn(everything).filter((code) => /^(?:src|workers|test|docs|bench|demo)\/[\w./*-]+$/.test(code));
    expect(named).to.have.lengthOf.above(20);
    expect(named.filter((path) => !existsAnywhere(path))).to.deep.equal([]);
  });

  it("name scripts of npm that exist", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    const named = [...everything.matchAll(/npm run (?:--\w+ )*([\w:]+)/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).to.deep.equal([]);
    const forms = [...everything.matchAll(/test:long -- ([\w-]+)/g)].map(([, name = ""]) => name);
    expect(forms.filter((name) => !Object.hasOwn(longForms, name))).to.deep.equal([]);
  });

  it("name settings and variables that exist", () => {
    const sources = ["src", "test"].flatMap((root) => sourcesIn(root)).map((file) => readFileSync(file, "utf8"));
    const named = new Set(everything.match(/STRONGROOM_[A-Z_]*[A-Z]/g));
    expect([...named].filter((name) => !sources.some((source) => source.includes(name)))).to.deep.equal([]);
  });

  it("name commands and flags that exist", async () => {
    const flags = await flagsByCommand();
    for (const [use, name = "", rest = ""] of codeIn(everything)
      .join("\n")
      .matchAll(/strongroom ([a-z]+(?:-[a-z]+)*)\b([^\n&|;<]*)/g)) {
      if (name === "help") continue;
      expect([...flags.keys()], use).to.include(name);
      const given = rest.replace(/ -- .*/, "").match(/(?<=\s)--?[a-z][\w-]*/g) ?? [];
      expect(flags.get(name), use).to.include.members(given);
    }
  });

  it("name benchmarks that exist", () => {
    const names = scenarios.map(({ name }) => name);
    for (const [scenario = ""] of checkedRows(textOf("docs/benchmarks.md"), "scenarios")) {
      expect(names).to.include(scenario.replaceAll("`", ""));
    }
    const options = readOptions([]);
    const compared = options === null ? [] : workloads(options).map(({ name }) => name);
    for (const [, main, only = ""] of everything.matchAll(/-- (main )?--only ([\w,-]+)/g)) {
      expect(main === undefined ? names : compared).to.include.members(only.split(","));
    }
  });

  it("are cited by tests under headings that they have", () => {
    const cited = sourcesIn("test").flatMap((file) => [
      ...readFileSync(file, "utf8").matchAll(/(docs\/[\w/-]+\.md), ([A-Z]\w+(?: [a-z]+)*)/g),
    ]);
    for (const [citation, file = "", words = ""] of cited) {
      expect(
        headingsIn(textOf(file)).some((heading) => words.startsWith(heading)),
        citation,
      ).to.equal(true);
    }
  });
});

function sourcesIn(root: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" });
  return names.filter((name) => /\.c?ts$/.test(name)).map((name) => join(root, name));
}

/** A `*` in the last segment stands for any name. */
function existsAnywhere(path: string): boolean {
  if (!path.includes("*")) return existsSync(path);
  const pattern = new RegExp(`^${basename(path).replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
  return readdirSync(dirname(path)).some((name) => pattern.test(name));
}

async function flagsByCommand(): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (const file of readdirSync("src/cli/commands")) {
    const name = basename(file, ".ts");
    const { define } = (await import(`../../src/cli/commands/${name}.js`)) as { define: (command: Command) => void };
    const command = new Command(name);
    define(command);
    const flags = command.options.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined));
    found.set(name, [...flags, "-h", "--help"]);
  }
  return found;
}
