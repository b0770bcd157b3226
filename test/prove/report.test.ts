/** Forms of the evidence: text, Markdown and HTML of the same sections in the same order. */
import { expect } from "chai";
import { evidence } from "../../prove/evidence.js";
import { asHtml, asMarkdown, asText } from "../../prove/forms.js";
import type { Check, Report } from "../../prove/report.js";

const hash = "ab".repeat(32);

function attacker(state: Check["state"], found: number, expected: number): Check {
  return { step: "attacker", state, what: "places that open the vault", expected, found, holds: found === expected };
}

function copies(state: Check["state"], name: string, found: number): Check {
  return { step: "known-keys", state, what: `copies of the ${name}`, expected: 0, found, holds: found === 0 };
}

const held: readonly Check[] = [
  copies("unlocked", "passphrase", 0),
  attacker("unlocked", 1, 1),
  attacker("locked", 0, 0),
  attacker("unlocked", 1, 1),
];

const damaged: Check = {
  ...{ step: "disk", state: null, what: "files | <b>", expected: "no file", found: "<script>" },
  ...{ holds: false, detail: "a_b" },
};

function reportWith(checks: readonly Check[]): Report {
  return {
    verdict: checks.every(({ holds }) => holds) ? "holds" : "fails",
    reason: null,
    at: "2026-03-01T12:00:00.000Z",
    checks,
    notShown: ["Memory of the kernel & others"],
    weaknesses: ["memory may be <swapped> out"],
    machine: { system: "linux x64", pid: null, programListSha256: hash },
  };
}

function numbers(checks: readonly Check[]) {
  const [first] = evidence(reportWith(checks)).sections;
  return first?.kind === "checks" ? first.rows.map(({ what, found, holds }) => [what.split(":")[0], found, holds]) : [];
}

const plain = (_: string, part: string) => part;
const titles = [
  "In memory",
  "What failed",
  "Attacker's scan",
  "Files on disk",
  "Weaknesses",
  "Not shown",
  "For the ticket",
];

function positions(text: string): number[] {
  return titles.map((title) => text.indexOf(title));
}

describe("reports", () => {
  it("the evidence begins with the keys in the front end, in the key worker and after a lock", () => {
    const expected = [
      ["front end", 0, true],
      ["key worker", 1, true],
      ["after lock", 0, true],
    ];
    expect(numbers(held)).to.deep.equal(expected);
  });

  it("the evidence counts each stray copy once in the front end, however many looks found it", () => {
    const stray = [
      copies("unlocked", "passphrase", 3),
      copies("unlocked", "KEK", 1),
      copies("unlocked", "passphrase", 2),
    ];
    expect(numbers([...stray, attacker("unlocked", 2, 1)])[0]).to.deep.equal(["front end", 4, false]);
    expect(numbers([attacker("unlocked", 3, 1)])[0]).to.deep.equal(["front end", 2, false]);
  });

  it("the evidence says of a state that was not looked at that it was not", () => {
    const rows = [
      ["front end", "not looked at", null],
      ["key worker", "not looked at", null],
      ["after lock", 0, true],
    ];
    expect(numbers([attacker("locked", 0, 0)])).to.deep.equal(rows);
  });

  it("the evidence fails the key worker's number for a scan that finds no key", () => {
    expect(numbers([attacker("unlocked", 0, 1)])[1]).to.deep.equal(["key worker", 0, false]);
  });

  for (const [form, text] of [
    ["text", asText(evidence(reportWith([...held, damaged])), plain, 80)],
    ["Markdown", asMarkdown(evidence(reportWith([...held, damaged])))],
    ["HTML", asHtml(evidence(reportWith([...held, damaged])))],
  ] as const) {
    it(`a report has verdict, numbers, failures, checks, limits and ticket in this order in ${form}`, () => {
      const found = [text.indexOf("At least one promise does not hold"), ...positions(text)];
      expect(found)
        .to.deep.equal([...found].sort((a, b) => a - b))
        .and.not.include(-1);
      expect(text).to.contain(hash);
    });
  }

  for (const columns of [120, 80, 64, 40, 24]) {
    it(`a report fits a terminal of ${columns} columns and loses no word`, () => {
      const page = evidence(reportWith([...held, damaged]));
      const text = asText(page, plain, columns);
      expect(Math.max(...text.split("\n").map(({ length }) => length))).to.be.at.most(columns);
      const flat = text.replace(/\s/g, "");
      for (const word of ["places", "vault", "whichnopromisecovers", hash, "Memoryofthekernel&others"])
        expect(flat).to.contain(word);
    });
  }

  it("a report has expected and found side by side, with a mark, from 64 columns on", () => {
    const text = asText(evidence(reportWith([...held, damaged])), plain, 80);
    expect(text).to.match(/^ {2}holds {2}unlocked: places that open the vault +1 +1$/m);
    expect(text).to.match(/^ {2}FAILS {2}files \| <b> +no file +<script>: a_b$/m);
  });

  it("a report tells the look after an unlock from the one before the lock", () => {
    const text = asText(evidence(reportWith(held)), plain, 80);
    expect(text).to.match(
      /unlocked: places .*\n.* locked: places .*\n.* unlocked again: places that open the vault +1 +1$/m,
    );
  });

  it("a report has expected and found below the check on a narrow terminal", () => {
    const text = asText(evidence(reportWith(held)), plain, 40);
    expect(text).to.match(/^ {2}holds {2}locked: places that open the\n {9}vault\n {9}expected 0, found 0$/m);
  });

  it("a report colours the verdict and the marks", () => {
    const text = asText(evidence(reportWith([...held, damaged])), (colour, part) => `<${colour}>${part}</>`, 80);
    expect(text).to.match(/^<red>At least one promise does not hold\.<\/>/);
    expect(text).to.match(/<red>FAILS<\/> {2}files/);
    expect(text).to.match(/<green>holds<\/> {2}locked/);
  });

  it("a report in Markdown contains no finding as markup", () => {
    const markdown = asMarkdown(evidence(reportWith([...held, damaged])));
    expect(markdown).to.match(/^# Strongroom: evidence\n/);
    expect(markdown).to.contain("- memory may be \\<swapped\\> out");
    expect(markdown).to.contain("| FAILS | files \\| \\<b\\> | no file | \\<script\\>: a\\_b |");
  });

  it("a report in HTML is one file without scripts, links or other origins", () => {
    const html = asHtml(evidence(reportWith([...held, damaged])));
    expect(html)
      .to.match(/^<!doctype html>/)
      .and.to.contain("<td>&lt;script&gt;: a_b</td>");
    expect(html).to.contain("<li>memory may be &lt;swapped&gt; out</li>");
    expect(html).to.not.match(/<script|<b>|<a |javascript:|https?:/i);
  });
});
