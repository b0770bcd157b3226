/** The documents as a whole: their generated tables, their links, and the commands and flags that they name. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Command } from "commander";
import { commands } from "../../src/cli/command-table.js";
import {
  type Block,
  blocksIn,
  documentFiles,
  headingAnchor,
  headingsIn,
  type Link,
  linksIn,
} from "../../tools/docs/document-files.js";
import { renderTables, tableNamesIn, withTables } from "../../tools/docs/generated-tables.js";
import { pictureFile, renderPicture } from "../../tools/docs/session-picture.js";
import { stringIo } from "../../tools/rig/string-io.js";

const texts = new Map(documentFiles.map((file) => [file, readFileSync(file, "utf8")]));

function documentText(file: string): string {
  return texts.get(file) ?? "";
}

describe("the documents", () => {
  it("the documents contain the tables that follow from the code, each once (npm run docs)", async () => {
    const tables = await renderTables();
    for (const [file, text] of texts) expect(withTables(text, tables), file).to.equal(text);
    expect([...texts.values()].flatMap(tableNamesIn).sort()).to.deep.equal([...tables.keys()].sort());
  });

  it("README begins with a picture of its first session (npm run docs)", () => {
    const readme = documentText("README.md");
    expect(readFileSync(pictureFile, "utf8")).to.equal(renderPicture(readme));
    expect(readme.slice(0, readme.indexOf("## "))).to.contain(`](${pictureFile})`);
  });

  it("all links lead somewhere, and README's reach every document", () => {
    const reached = new Set(["README.md"]);
    for (const file of reached) {
      const links = linksIn(file, documentText(file));
      expect(links.filter((link) => !leadsSomewhere(link))).to.deep.equal([]);
      for (const { path } of links) if (texts.has(path)) reached.add(path);
    }
    expect([...reached].sort()).to.deep.equal([...documentFiles].sort());
  });

  it("documents install our packages from files: npm's registry may have something else under our names", () => {
    const byName =
      /\b(?:npm (?:i|install|add|exec|x)|npx|pnpm (?:add|dlx)|yarn (?:add|dlx)|bunx?)\b[^\n`&|]*(?<![\w./-]|-w )strongroom(?:-\w+)?(?![\w.-])/;
    const sources = ["src", "workers", "packages", "packaging", "bin"].flatMap(filesUnder);
    expect(sources).to.have.lengthOf.above(300);
    const all = [...documentFiles, "openapi.yaml", "package.json", ...sources];
    expect(all.map((file) => byName.exec(readFileSync(file, "utf8"))?.[0]).filter(Boolean)).to.deep.equal([]);
    for (const bad of ["npm install --global strongroom-mcp", "npx strongroom up", "npm i strongroom-client"]) {
      expect(bad).to.match(byName);
    }
  });

  it("commands and programs stand only in snippets that are run, or that say why not", () => {
    const command =
      /^(?:sudo |export |eval |exec )?(?:strongroom|npm|npx|systemctl|podman|docker|git|curl|vault|bao|ansible|cosign|sops|claude|rm|setpriv|sha256sum|ssh-\w+|python3|gdb)\s/m;
    const isProgram = (block: Block) =>
      /^(?:[jt]s|python|go|sql)$/.test(block.language) ||
      (/^(?:text)?$/.test(block.language) && command.test(block.code));
    const elsewhere = ["README.md", "docs/node-client.md"]; // test/docs/commands.test.ts runs the first of each
    for (const [file, text] of texts) {
      const blocks = blocksIn(text).filter((block) => block.file === null && block.notRun === null && isProgram(block));
      expect(blocks.length, `${file}: ${blocks[0]?.code}`).to.equal(elsewhere.includes(file) ? 1 : 0);
    }
  });

  it("the first pages have 240 to 480 words, and references for the details", () => {
    const first =
      "broker cli configuration every-day from-dotenv http-api import node-client operations postgres python-and-go security";
    const pages = `${first} secrets-for-programs service team transit upgrade vault-clients which`
      .split(" ")
      .map((name) => `docs/${name}.md`);
    const lengths = pages.map((file) => [file, documentText(file).split(/\s+/).filter(Boolean).length] as const);
    expect(lengths.filter(([, words]) => words < 240 || words > 480)).to.deep.equal([]);
  });

  it("the README of a package of its own has no links to other files", () => {
    for (const name of ["client", "mcp"]) {
      const file = `packages/${name}/README.md`;
      expect(linksIn(file, documentText(file)).filter(({ path }) => path !== file)).to.deep.equal([]);
    }
  });

  it("the documents name files that exist", () => {
    const named = [...texts.values()].flatMap(codeIn);
    const files = named.filter((code) => /^(?:src|workers|test|docs|bench|demo)\/[\w./-]+$/.test(code));
    expect(files).to.have.lengthOf.above(20);
    expect(files.filter((file) => !existsSync(file))).to.deep.equal([]);
  });

  it("the documents name commands and flags that exist", async () => {
    const flags = await flagsByCommand();
    const code = [...texts.values()].flatMap(codeIn).join("\n");
    for (const [use, name = "", rest = ""] of code.matchAll(/strongroom ([a-z]+(?:-[a-z]+)*)\b([^\n&|;<]*)/g)) {
      if (name === "help") continue;
      expect([...flags.keys()], use).to.include(name);
      const given = rest.replace(/ -- .*/, "").match(/(?<=\s)--?[a-z][\w-]*/g) ?? [];
      expect(flags.get(name), use).to.include.members(given);
    }
  });
});

function leadsSomewhere({ path, anchor }: Link): boolean {
  return existsSync(path) && (anchor === null || headingsIn(documentText(path)).map(headingAnchor).includes(anchor));
}

function filesUnder(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !/node_modules|dist/.test(entry.parentPath));
  return files.map(({ parentPath, name }) => join(parentPath, name));
}

/** Returns the texts between backquotes, and in fenced blocks. */
function codeIn(text: string): string[] {
  const spans = text.replace(/^```.*?^```$/gms, "").matchAll(/`([^`]+)`/g);
  return [...[...spans].map(([, span = ""]) => span), ...blocksIn(text).map(({ code }) => code)];
}

async function flagsByCommand(): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  const io = stringIo();
  for (const { name, load } of commands) {
    const command = new Command(name);
    (await load()).define(command, io);
    const flags = command.options.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined));
    found.set(name, [...flags, "-h", "--help"]);
  }
  return found;
}
