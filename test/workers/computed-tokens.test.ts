/** Access tokens in the key worker: when they end without a request. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { utf8 } from "../../workers/memory.js";
import { accessToken, ComputedTokens, putAccessToken } from "../../workers/uses/tokens.js";

describe("access tokens in the key worker", () => {
  const [now, day] = [Date.now(), 24 * 3_600_000];
  const tokenUntil = (until: number) => {
    const held = new ComputedTokens().current("app/key", "etag", null);
    putAccessToken(held, "exchange", utf8("token"), until, now);
    return { held, bytes: accessToken(held, "exchange", now) };
  };

  it("an access token is wiped when its use ends, although no request asks for it", async () => {
    const { held, bytes } = tokenUntil(now + 20);
    while (held.access.size > 0) await sleep(5);
    expect(bytes).to.deep.equal(new Uint8Array(5));
  });

  it("an access token stays for as long as its use lasts, also beyond the longest delay of a timer", async () => {
    for (const until of [now + day, now + 60 * day, Number.POSITIVE_INFINITY]) {
      const { held, bytes } = tokenUntil(until);
      await sleep(20);
      expect(accessToken(held, "exchange", now))
        .to.equal(bytes)
        .and.to.deep.equal(utf8("token"));
    }
  });
});
