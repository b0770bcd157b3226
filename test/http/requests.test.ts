/** Every request of both ports, in every state, with every token, as the documents say: see `test/support/requests.ts`. */
import { expect } from "chai";
import { endpoints } from "../../src/http/endpoints.js";
import { vaultEndpoints } from "../../src/vault-api/api.js";
import { shared } from "../../tools/rig/clean-up.js";
import { uncached } from "../../tools/rig/server.js";
import { mustLock } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { heldFiles } from "../support/held-files.js";
import { judgeEnds, judgeLateBodies } from "../support/request-ends.js";
import * as judges from "../support/request-judges.js";
import { startBareRig, startRig } from "../support/request-rig.js";
import {
  allRequests,
  forcedInit,
  nativeRequests,
  recordedForms,
  unforcedInit,
  vaultRequests,
} from "../support/requests.js";

describe("every request", () => {
  const rig = shared(startRig);
  const must = (judge: judges.Judge) => async () => expect(await judge(rig(), allRequests)).to.deep.equal([]);

  it("every request has a row in the table of the tests", () => {
    expect(nativeRequests.map(({ at }) => at).sort()).to.deep.equal(endpoints.map(({ at }) => at).sort());
    expect(vaultRequests.map(({ at }) => at).sort()).to.deep.equal(vaultEndpoints.map(({ at }) => at).sort());
  });

  it("every request succeeds for the root token, is recorded, and carries only what it may", async () => {
    expect(await judges.judgeSamples(rig(), [...recordedForms, ...allRequests])).to.deep.equal([]);
  });

  it("every request is refused to every token that may not send it", must(judges.judgeUnlocked));
  it("every request is refused while the vault is locked, after the token's scopes", must(judges.judgeLocked));
  it("every request is checked for its path, its token's reach, and all else, in this order", must(judges.judgeOrder));
  it("every request is refused before a byte of its body is asked for", must(judges.judgeUnreadBodies));
  it("every request is refused when its token ends while the body arrives", must(judgeLateBodies));
  it("every request is refused with a malformed condition or query", must(judges.judgeParameters));
  it("every request is refused to another site or host, and for a namespace", must(judges.judgeOthers));
  it(
    "another method is refused before the state, and the allowed ones are named only to a valid token",
    must(judges.judgeMethods),
  );
  it(
    "every request is refused to an address that is locked out, unless it tells only the state",
    must(judges.judgeLockout),
  );
  it("every request counts a wrong passphrase or login towards a lockout", must(judges.judgeCounting));

  it("every request is refused when its token ends while it waits for its turn, or before its response leaves", async () => {
    const files = heldFiles();
    const held = await startRig({ files: files.files, ...uncached });
    expect(await judgeEnds(held, [...allRequests, forcedInit], files)).to.deep.equal([]);
  });

  it("every request is refused while the audit log must have it and takes no records", async () => {
    const files = failingFiles();
    const full = await startRig({ files: files.files, auditOnFailure: "deny" });
    expect(await judges.judgeFullAudit(full, allRequests, files)).to.deep.equal([]);
  });

  it("every request is refused without a vault, where no client token is valid", async () => {
    const bare = await startBareRig();
    expect(await judges.judgeUninitialized(bare, allRequests)).to.deep.equal([]);
    await judges.shutDown(bare, allRequests);
  });

  it("every request works or is refused in every state, and leaves the vault in the state that it promises", async () => {
    const bare = await startBareRig();
    expect(await judges.judgeStates(bare, [...allRequests, unforcedInit, forcedInit])).to.deep.equal([]);
    await mustLock(bare.server);
    await judges.shutDown(bare, allRequests);
  });

  it("every request is refused while the server stops, unless it tells only the state", async () => {
    expect(await judges.judgeStopping(await startRig(), allRequests)).to.deep.equal([]);
  });
});
