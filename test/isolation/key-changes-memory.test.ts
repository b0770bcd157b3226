/** Keys in the server's memory, searched for from outside, through changes of the passphrase, the keys and the master key. */
import { existsSync } from "node:fs";
import { expect } from "chai";
import { decodeHeader, decodeKeys, headerText } from "../../tools/rig/decoder.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { type Found, scanProcess } from "../../tools/rig/scanner.js";
import { mustInit, mustLock, mustPut, mustStatus, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { changing, mustCreateKey, untilRotated } from "../support/key-requests.js";

const passphrase = "correct horse battery staple of the scanner";
const another = "another passphrase that the scanner looks for";
const canary = "canary-that-the-scanner-must-find";

/** Short in the normal suite; 20 in the long form. */
const rounds = Number(process.env["STRONGROOM_ROUNDS"] ?? 1);

const gone: Found = { full: 0, half: 0 };
/** The key schedule for AES instructions begins with the key itself. */
const once: Found = { full: 1, half: 0 };

/** Enough that a rotation still runs when the scan begins. */
const secrets = 100;

describe("the server's memory, through changes of the keys", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  for (let round = 1; round <= rounds; round++) {
    it(`holds the master key once after a change of the passphrase and a new key, and nothing after a lock (round ${round})`, async () => {
      const server = await start();
      await mustInit(server, { passphrase });
      const before = decodeKeys(server.home, passphrase);
      const { key } = await mustCreateKey(server, "recovery", passphrase);
      mustSucceed(await send(server, changing(key, another)));
      mustSucceed(await send(server, changing(another, passphrase)));
      const after = decodeKeys(server.home, passphrase);
      const wanted = { masterKey: after.masterKey, kek: after.kek, before: before.kek, key: keyBytes(key), ...texts };
      const found = { kek: gone, before: gone, key: gone, passphrase: gone, another: gone };
      expect(look(server, wanted)).to.deep.equal({ masterKey: once, ...found });
      await mustLock(server);
      expect(look(server, wanted)).to.deep.equal({ masterKey: gone, ...found });
      mustSucceed(await send(server, changing(passphrase, another)));
      await mustUnlock(server, key);
      expect(look(server, wanted)).to.deep.equal({ masterKey: once, ...found });
    });

    it(`holds the master key twice, as the old and the new one, during a rotation, and the old one nowhere after it (round ${round})`, async () => {
      const server = await start();
      await mustInit(server, { passphrase });
      for (let n = 0; n < secrets; n++) await mustPut(server, `s${n}`, "v");
      await mustLock(server); // so that the rotation waits
      await mustRotate(server);
      const { masterKey, oldKey, kek } = decodeHeader(headerText(server.home), passphrase);
      if (oldKey === null) throw new Error("the header has no old key");
      const wanted = { masterKey, oldKey, kek, ...texts };
      const found = { kek: gone, passphrase: gone, another: gone };
      expect(look(server, wanted)).to.deep.equal({ masterKey: gone, oldKey: gone, ...found });
      await mustUnlock(server, passphrase);
      expect(look(server, wanted)).to.deep.equal({ masterKey: once, oldKey: once, ...found });
      expect((await mustStatus(server))["rotation"], "it was running during the scan").not.to.equal(undefined);
      await mustLock(server);
      expect(look(server, wanted)).to.deep.equal({ masterKey: gone, oldKey: gone, ...found });
      await mustUnlock(server, passphrase);
      await untilRotated(server);
      expect(look(server, wanted)).to.deep.equal({ masterKey: once, oldKey: gone, ...found });
      await mustLock(server);
      expect(look(server, wanted)).to.deep.equal({ masterKey: gone, oldKey: gone, ...found });
    });
  }
});

const texts = { passphrase: Buffer.from(passphrase), another: Buffer.from(another) };

function start(): Promise<ServerProcess> {
  return startProcess([], { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0" });
}

async function mustRotate(server: ServerProcess): Promise<void> {
  mustSucceed(await send(server, { method: "POST", path: "/v1/rotate", body: { passphrase, keys: [] } }));
}

/** Searches for the secrets, and proves with the canary that the search works. */
function look(server: ServerProcess, wanted: Readonly<Record<string, Uint8Array>>): Record<string, Found> {
  const all = new Map([...Object.entries(wanted), ["canary", Buffer.from(canary)] as const]);
  const { canary: planted, ...found } = Object.fromEntries(scanProcess(server.child.pid ?? 0, all));
  expect(planted?.full, "the scanner's canary").to.be.above(0);
  return found;
}

/** The 256 bits of a key's text, by Crockford's base32 with every fifth letter left out. */
function keyBytes(text: string): Buffer {
  const letters = [...text.slice(3).replaceAll("-", "")].filter((_, i) => i % 5 < 4);
  const bits = letters.map((letter) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(letter).toString(2).padStart(5, "0"));
  const octets = bits.join("").match(/.{8}/g) ?? [];
  return Buffer.from(octets.slice(0, 32).map((octet) => Number.parseInt(octet, 2)));
}
