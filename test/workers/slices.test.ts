/** Turns of the slices of batches with transit keys. */
import { setImmediate as nextIteration } from "node:timers/promises";
import { expect } from "chai";
import { TransitState } from "../../workers/transit/state.js";

describe("slices of batches with transit keys", () => {
  it("slices of batches run one in each iteration of the event loop, and their batches take turns", async () => {
    const state = new TransitState();
    let iteration = 0;
    let isCounting = true;
    const counting = (async () => {
      for (; isCounting; iteration++) await nextIteration();
    })();
    const worked: (readonly [batch: number, iteration: number])[] = [];
    const batch = async (number: number) => {
      for (let slice = 0; slice < 3; slice++) {
        await state.sliceTurn();
        worked.push([number, iteration]);
      }
    };
    await Promise.all([0, 1, 2, 3].map(batch));
    isCounting = false;
    await counting;
    expect(worked.map(([number]) => number)).to.deep.equal([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    expect(new Set(worked.map(([, at]) => at)).size).to.equal(worked.length);
  });
});
