/** Lockout keys and the bounded table of addresses. */
import { expect } from "chai";
import { FailureStore, keyOfAddress, keyOfOrigin } from "../../src/access/lockout.js";
import { FakeClock } from "../support/manual-clock.js";

const same: readonly (readonly [string, string])[] = [
  ["192.0.2.1", "::ffff:192.0.2.1"],
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"],
  ["fe80::1%eth0", "fe80::2"],
];
const different: readonly (readonly [string, string])[] = [
  ["192.0.2.1", "192.0.2.2"],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2"],
  ["2001:db8:1:2::1", "2001:db8:1:3::1"],
];

describe("lockout keys", () => {
  for (const [a, b] of same)
    it(`${a} and ${b} have the same lockout key`, () => expect(keyOfAddress(a)).to.equal(keyOfAddress(b)));
  for (const [a, b] of different) {
    it(`${a} and ${b} have different lockout keys`, () => expect(keyOfAddress(a)).not.to.equal(keyOfAddress(b)));
  }
});

describe("lockouts", () => {
  it("a lockout lasts 300 s even when the wall clock is changed during it", () => {
    const clock = new FakeClock();
    const store = new FailureStore(clock);
    for (let i = 0; i < 10; i++) store.fail("a");
    for (const hour of [-3_600_000, 7_200_000]) {
      clock.jump(hour);
      expect(store.secondsLeft("a")).to.equal(300);
    }
    clock.advance(300_000);
    expect(store.secondsLeft("a")).to.equal(0);
  });

  it("a lockout ignores failures older than 60 s even when the wall clock was set back", () => {
    const clock = new FakeClock();
    const store = new FailureStore(clock);
    for (let i = 0; i < 9; i++) store.fail("a");
    clock.jump(-3_600_000);
    clock.advance(61_000);
    expect(store.fail("a")).to.equal(false);
  });
});

describe("passphrase lockout keys", () => {
  for (const address of ["127.0.0.1", "127.255.255.254", "::ffff:127.0.0.2", "::1"]) {
    it(`${address} has the passphrase lockout key of every loopback address`, () => {
      expect(keyOfOrigin(address)).to.equal(keyOfOrigin("127.0.0.9"));
    });
  }
  it("addresses other than loopback have passphrase lockout keys of their own", () => {
    const keys = ["127.0.0.1", "128.0.0.1", "192.0.2.1", "2001:db8::1"].map(keyOfOrigin);
    expect(new Set(keys).size).to.equal(keys.length);
  });
});

describe("the table of failures", () => {
  const lockOut = (store: FailureStore, key: string) => {
    for (let i = 0; i < 10; i++) store.fail(key);
  };

  it("the table of failures drops the key with the oldest last failure once it has 10,000", () => {
    const store = new FailureStore(new FakeClock());
    for (let i = 0; i < 9; i++) store.fail("first");
    for (let i = 0; i < 10_000; i++) store.fail(`address ${i}`);
    expect(store.fail("first")).to.equal(false);
  });

  it("the table of failures never drops an active lockout", () => {
    const store = new FailureStore(new FakeClock());
    lockOut(store, "first");
    for (let i = 0; i < 20_000; i++) store.fail(`address ${i}`);
    for (let i = 0; i < 10_500; i++) lockOut(store, `locked out ${i}`);
    expect(store.secondsLeft("first")).to.equal(300);
  });

  it("locks out all other keys when the table has no room for one more lockout", () => {
    const clock = new FakeClock();
    const store = new FailureStore(clock);
    for (let i = 0; i < 10_000; i++) lockOut(store, `address ${i}`);
    expect(store.secondsLeft("other")).to.equal(0);
    lockOut(store, "one more");
    for (const key of ["one more", "other"]) expect(store.secondsLeft(key)).to.equal(300);
    clock.advance(300_000);
    for (const key of ["address 0", "one more", "other"]) expect(store.secondsLeft(key)).to.equal(0);
    expect(store.fail("other")).to.equal(false);
  });
});
