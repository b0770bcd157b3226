/** The search of a server's memory from outside: a scene acts and says what may be found, and a canary proves the search. */
import { existsSync } from "node:fs";
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { type Found, scanProcess, whatStays } from "../../tools/rig/scanner.js";
import { closeConnections } from "../../tools/rig/test-client.js";

export const passphrase = "correct horse battery staple of the scanner";
export const canary = "canary-that-the-scanner-must-find";

/** Secrets by the names that a failure says. */
export type Secrets = Readonly<Record<string, Uint8Array | string>>;

/** A search. The secrets of `gone` must not be found; `once`: found once (AES's key schedule begins with the key); `some`: found. */
export type Look = {
  readonly when: string;
  readonly server: ServerProcess;
  readonly gone: Secrets;
  readonly once?: Secrets;
  readonly some?: Secrets;
  /** Ends of secrets, which must not be found, and are so short that halves of them are found by chance. */
  readonly ends?: Secrets;
  /** Whether a request may still be on its way, so that the search is repeated for a while. */
  readonly settles?: true;
};

/** Acts on servers of its own, and stops for each search. */
export type Scene = () => AsyncGenerator<Look, void>;

/** A suite of scenes. The name of each says what the server's memory has or does not have. */
export function describeMemory(title: string, scenes: Readonly<Record<string, Scene>>): void {
  describe(title, function () {
    this.timeout(0);
    before(function () {
      needs(this, existsSync("/proc/self/mem"), "/proc/self/mem");
    });
    for (const [name, scene] of Object.entries(scenes)) {
      it(`the server's memory ${name}`, async () => {
        for await (const look of scene()) {
          const found = look.settles ? await whatStays(() => wrongIn(look)) : wrongIn(look);
          expect(found, look.when).to.deep.equal([]);
        }
      });
    }
  });
}

/** A server that holds the canary, and that does not lock by itself. */
export function startWithCanary(
  settings: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<ServerProcess> {
  return startProcess(args, { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0", ...settings });
}

/** Returns the findings that the look does not allow. */
function wrongIn(look: Look): string[] {
  const { server } = look;
  const all = Object.entries({ ...look.gone, ...look.once, ...look.some, ...look.ends, canary });
  const found = scanProcess(server.child.pid ?? 0, new Map(all.map(([name, secret]) => [name, Buffer.from(secret)])));
  closeConnections(server); // the server, which the search stopped, closes those that were idle for too long
  expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
  found.delete("canary");
  return [...found].flatMap(([name, copies]) =>
    isAllowed(look, name, copies) ? [] : [`${name}: ${copies.full} and ${copies.half} halves`],
  );
}

function isAllowed({ once = {}, some = {}, ends = {} }: Look, name: string, { full, half }: Found): boolean {
  if (name in some) return full > 0;
  if (name in ends) return full === 0;
  return full === (name in once ? 1 : 0) && half === 0;
}
