/** The soak's trend test finds a rise in noise, and no rise in noise alone. */
import { expect } from "chai";
import { Random } from "../support/random.js";
import { fitTrend, rises, type Sample } from "./trend.js";

/** Samples every 0.01 units of time on a line of this slope, with uniform noise of this size. */
function series(slope: number, noise: number): Sample[] {
  const random = new Random(1);
  return Array.from({ length: 200 }, (_, n) => ({
    at: n / 100,
    value: 100 + (slope * n) / 100 + noise * (2 * random.next() - 1),
  }));
}

describe("the soak's trend test", () => {
  it("the trend test finds the slope of a line without spread", () => {
    const { slope, spread } = fitTrend(series(7, 0));
    expect(slope).to.be.closeTo(7, 1e-9);
    expect(spread).to.be.closeTo(0, 1e-9);
  });

  it("the trend test finds a slope in noise to within its spread", () => {
    const { slope, spread } = fitTrend(series(7, 20));
    expect(spread).to.be.within(0.5, 5);
    expect(Math.abs(slope - 7)).to.be.below(3 * spread);
  });

  const rows: readonly (readonly [string, number, number, boolean])[] = [
    ["a flat line", 0, 0, false],
    ["noise around a flat line", 0, 50, false],
    ["a fall", -100, 10, false],
    ["a rise below the limit", 20, 5, false],
    ["a rise above the limit", 60, 5, true],
    ["a steep rise in much noise", 200, 50, true],
  ];
  for (const [name, slope, noise, expected] of rows) {
    it(`the trend test says of ${name} that it ${expected ? "rises" : "is level"}`, () => {
      expect(rises(fitTrend(series(slope, noise)), 32)).to.equal(expected);
    });
  }

  it("the trend test rejects two samples", () => {
    expect(() => fitTrend(series(1, 0).slice(0, 2))).to.throw("three samples");
  });
});
