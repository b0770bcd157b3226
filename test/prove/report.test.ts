/** Forms of the evidence: text, Markdown and HTML. */
import { expect } from "chai";
import { asHtml, asMarkdown, asText, type Report } from "../../prove/report.js";

const report: Report = {
  verdict: "fails",
  reason: null,
  at: "2026-03-01T12:00:00.000Z",
  checks: [
    { step: "attacker", state: "unlocked", what: "places that open the vault", expected: 1, found: 1, holds: true },
    {
      step: "disk",
      state: null,
      what: "files | <b>",
      expected: "no file",
      found: "<script>",
      holds: false,
      detail: "a_b",
    },
  ],
  notShown: ["Memory of the kernel & others"],
  weaknesses: ["memory may be <swapped> out"],
  machine: { system: "linux x64", pid: null },
};

describe("evidence", () => {
  it("is a table that marks what fails, with what was expected", () => {
    const text = asText(report, (_, part) => part);
    expect(text).to.match(/holds {2}unlocked: places that open the vault +1\n/);
    expect(text).to.match(/FAILS {2}files \| <b> +<script>: a_b {2}\(expected no file\)\n/);
    expect(text).to.contain("- Memory of the kernel & others");
    expect(text).to.contain("which no promise covers\n  - memory may be <swapped> out\n");
    expect(text).to.match(/At least one promise does not hold\.\n$/);
  });

  it("is Markdown in which nothing that was found is markup", () => {
    const markdown = asMarkdown(report);
    expect(markdown).to.match(/^# Strongroom: evidence\n/);
    expect(markdown).to.contain("- memory may be \\<swapped\\> out");
    expect(markdown).to.contain("|  | files \\| \\<b\\> | no file | \\<script\\>: a\\_b | FAILS |");
  });

  it("is one HTML file without scripts, links or other origins", () => {
    const html = asHtml(report);
    expect(html)
      .to.match(/^<!doctype html>/)
      .and.to.contain("<td>&lt;script&gt;: a_b</td>");
    expect(html).to.contain("<li>memory may be &lt;swapped&gt; out</li>");
    expect(html).to.not.match(/<script|<b>|<a |javascript:|https?:/i);
  });
});
