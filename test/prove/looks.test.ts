/** Checks of several copies of a server's memory, as one result. */
import { expect } from "chai";
import { lastingChecks } from "../../prove/looks.js";
import type { Check } from "../../prove/report.js";

function check(what: string, found: number): Check {
  return { step: "known-keys", state: "locked", what, expected: 0, found, holds: found === 0 };
}

const rotated = check("master key before the rotation", 0);
const names = ["master key", "private ed25519 keys", "private hmac keys"];

function copyWith(failing: readonly string[], added: readonly Check[] = []): Check[] {
  return [...added, ...names.map((name) => check(name, failing.includes(name) ? 1 : 0))];
}

function failures(checks: readonly Check[]): string[] {
  return checks.filter(({ holds }) => !holds).map(({ what }) => what);
}

describe("checks of two copies of the memory", () => {
  const ed25519 = ["private ed25519 keys"];
  for (const [when, before, after] of [
    ["between which nothing was rotated", [], []],
    ["between which a rotation began", [], [rotated]],
    ["between which a rotation ended", [rotated], []],
  ] as const) {
    it(`checks of copies ${when} fail where both failed, and have the names of the second`, () => {
      const both = lastingChecks(copyWith(ed25519, before), copyWith(ed25519, after));
      expect(failures(both)).to.deep.equal(ed25519);
      expect(both.map(({ what }) => what)).to.deep.equal(copyWith([], after).map(({ what }) => what));
    });

    it(`checks of copies ${when} hold where one held`, () => {
      expect(failures(lastingChecks(copyWith(ed25519, before), copyWith([], after)))).to.deep.equal([]);
      expect(failures(lastingChecks(copyWith([], before), copyWith(ed25519, after)))).to.deep.equal([]);
      expect(failures(lastingChecks(copyWith(ed25519, before), copyWith(["private hmac keys"], after)))).to.be.empty;
    });
  }

  it("checks fail where only the second copy has a check that fails", () => {
    const failing = check(rotated.what, 1);
    expect(failures(lastingChecks(copyWith([]), copyWith([], [failing])))).to.deep.equal([rotated.what]);
  });
});
