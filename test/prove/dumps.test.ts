/** Dumps: what `strongroom prove --dump` and `tools/prove.py` find in them, which must be the same. */
import { createCipheriv, createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { encryptBlock, expandKey, scheduleWords } from "../../prove/aes.js";
import { fitsSlot, isSigned, type Keys, openHeader, parseHeader } from "../../prove/format.js";
import { HmacLanes } from "../../prove/sha256-lanes.js";
import { needs } from "../../tools/rig/needs.js";
import { startProcess } from "../../tools/rig/process.js";
import { passphrase, startTestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { headerOfVersion1, headerOfVersion2 } from "../vectors/frozen-headers.js";
import { file, hasPython, makeCore, proveDump, pythonDump, takeDump } from "./both-programs.js";
import { needsForeignMemory, prove } from "./run-prove.js";

function openKeys(header: Uint8Array): Keys {
  const keys = openHeader(parseHeader(header), Buffer.from(passphrase));
  if (keys === null) throw new Error("the header does not open");
  return keys;
}

const frozenKeys = openKeys(Buffer.from(headerOfVersion2.text));

/** The expanded key in the order of AES instructions, or word by word as portable code keeps it. */
function keySchedule(key: Uint8Array, order: "bytes" | "words"): Buffer {
  const words = new Uint32Array(scheduleWords);
  for (let i = 0; i < 8; i++) words[i] = Buffer.from(key).readUInt32BE(4 * i);
  expandKey(words);
  const bytes = Buffer.alloc(4 * scheduleWords);
  for (const [i, word] of words.entries()) {
    if (order === "bytes") bytes.writeUInt32BE(word, 4 * i);
    else bytes.writeUInt32LE(word, 4 * i);
  }
  return bytes;
}

describe("dumps", function () {
  this.timeout(0);

  const { masterKey, kek } = frozenKeys;
  const { vaultId } = parseHeader(Buffer.from(headerOfVersion2.text));
  type Row = readonly [what: string, plant: (memory: Buffer) => void, attacker: number, known: readonly number[]];
  const plain = (name: string) => Buffer.from(name);
  const rows: readonly Row[] = [
    ["no secret", () => {}, 0, [0, 0, 0]],
    ["the master key as it is", (memory) => masterKey.copy(memory, 4096), 1, [1, 0, 0]],
    [
      "the master key at an odd address, and a piece of it",
      (memory) => {
        masterKey.copy(memory, 4099);
        masterKey.copy(memory, 16_387, 11, 22);
      },
      0,
      [2, 0, 0],
    ],
    ["an expanded key, in words", (memory) => keySchedule(masterKey, "words").copy(memory, 8200), 1, [0, 0, 0]],
    [
      "an expanded key, in bytes, and the KEK",
      (memory) => {
        keySchedule(masterKey, "bytes").copy(memory, 8204);
        kek.copy(memory, 20_480);
      },
      2,
      [1, 1, 0],
    ],
    [
      "hex and base64, the passphrase, and a piece of it",
      (memory) => {
        memory.write(`${kek.toString("hex")} ${masterKey.toString("base64")}`, 77);
        plain(`${passphrase}, horse battery`).copy(memory, 8192);
      },
      0,
      [1, 1, 2],
    ],
    ["UTF-16", (memory) => memory.write(masterKey.toString("base64url"), 99, "utf16le"), 0, [1, 0, 0]],
  ];
  for (const [what, plant, attacker, [master = 0, kekCount = 0, text = 0]] of rows) {
    it(`both programs judge a dump with ${what} the same`, async function () {
      needs(this, hasPython, "Python");
      const memory = randomBytes(32 * 1024);
      vaultId.copy(memory, 30_001); // as a server of the vault has it
      plant(memory);
      const [headerFile, dump] = [file("header.json", headerOfVersion2.text), file("dump", memory)];
      const known = { "master key": master, "KEK of the passphrase": kekCount, passphrase: text };
      const isUsual = attacker <= 1 && master <= 1 && kekCount + text === 0;
      const expected = { attacker, known, code: isUsual ? 0 : 12 };
      expect(await proveDump(headerFile, dump), "strongroom prove").to.deep.equal(expected);
      expect(await pythonDump(headerFile, dump), "prove.py").to.deep.equal(expected);
    });
  }

  it("both programs judge a real server's dump the same, and fail it if the server was locked", async function () {
    needsForeignMemory.call(this);
    needs(this, hasPython, "Python");
    const server = await startProcess();
    await mustInit(server);
    await mustPut(server, "a", "a value");
    const headerFile = join(server.vaultPath, "gen-1", "header.json");
    const header = readFileSync(headerFile);
    const dump = await takeDump(server, [openKeys(header).masterKey, parseHeader(header).vaultId]); // the rounds of `prove` judge whole dumps
    const expected = { attacker: 1, known: { "master key": 1, "KEK of the passphrase": 0, passphrase: 0 } };
    expect(await proveDump(headerFile, dump)).to.deep.equal({ ...expected, code: 0 });
    expect(await pythonDump(headerFile, dump, "--state", "locked")).to.deep.equal({ ...expected, code: 12 });
  });
});

describe("dumps of something else than a server of the vault", function () {
  this.timeout(0);
  const { masterKey } = frozenKeys;
  const { vaultId } = parseHeader(Buffer.from(headerOfVersion2.text));
  const memory = Buffer.alloc(8192, "memory of a server ");
  const withId = Buffer.concat([memory, vaultId, Buffer.from(vaultId.toString("base64url"))]);
  const withKey = Buffer.concat([memory, masterKey, masterKey]);
  const notes = { kind: 4, address: 0, bytes: Buffer.alloc(64) };
  const missing = { address: 4096, bytes: new Uint8Array(), inMemory: 1 << 20 };
  const core = makeCore([notes, { address: 4096, bytes: withId }]);
  type Row = readonly [what: string, dump: Buffer, code: number];
  const rows: readonly Row[] = [
    ["empty", Buffer.alloc(0), 13],
    ["zeros", Buffer.alloc(8192), 13],
    ["random", randomBytes(8192), 13],
    ["a core with notes alone", makeCore([notes]), 13],
    ["a core whose regions have no bytes", makeCore([notes, missing]), 13],
    [
      "a core that lacks the bytes of one of its writable regions",
      makeCore([{ address: 0, bytes: withId }, missing]),
      13,
    ],
    ["a core that is cut off in its memory", core.subarray(0, -1), 13],
    ["a core that is cut off in its headers", core.subarray(0, 100), 13],
    ["another program's, but for two copies of the master key", withKey, 12],
  ];
  const states = [[], ["--state", "locked"], ["--state", "unlocked"]] as const;
  for (const [i, [what, bytes, code]] of rows.entries()) {
    it(`a dump that is ${what} gets no verdict from either program, or fails`, async function () {
      needs(this, hasPython, "Python");
      const [header, dump] = [file("header.json", headerOfVersion2.text), file("dump", bytes)];
      const state = states[i % states.length] ?? [];
      expect((await proveDump(header, dump, "--as-attacker", ...state)).code, "strongroom prove").to.equal(code);
      expect((await pythonDump(header, dump, ...state)).code, "prove.py").to.equal(code);
    });
  }

  it("prove's report on a foreign dump has no check, and a reason with the command that makes a dump", async () => {
    const [header, dump] = [file("header.json", headerOfVersion2.text), file("dump", Buffer.alloc(8192))];
    const flags = ["--as-attacker", "--state", "unlocked", "--header", header, "--dump", dump];
    const { report } = await prove("/nonexistent", ...flags);
    expect([report.verdict, report.checks]).to.deep.equal(["unknown", []]);
    expect(report.reason).to.match(/the vault's id is not in it.*gdb -p PID/);
  });
});

describe("dumps with private transit keys", function () {
  this.timeout(0);
  const pairs = {
    ed25519: generateKeyPairSync("ed25519").privateKey,
    x25519: generateKeyPairSync("x25519").privateKey,
    "ecdsa-p256": generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    "rsa-2048": generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
  };
  const hmac = randomBytes(32);
  const der = (type: keyof typeof pairs) => pairs[type].export({ format: "der", type: "pkcs8" });
  const number = (type: keyof typeof pairs, name: "d" | "p") => {
    return Buffer.from(pairs[type].export({ format: "jwk" })[name] ?? "", "base64url");
  };

  const pem = (type: keyof typeof pairs) => pairs[type].export({ format: "pem", type: "pkcs8" }).toString();
  const held = [
    number("ed25519", "d"),
    number("x25519", "d"),
    number("ecdsa-p256", "d").reverse(),
    number("rsa-2048", "p").reverse(),
  ];
  type Row = readonly [what: string, planted: readonly (Uint8Array | string)[], code: number];
  const rows: readonly Row[] = [
    ["numbers as OpenSSL holds them, which an unlocked server does", held, 0],
    ["the DER of an RSA key", [der("rsa-2048")], 12],
    [
      "most of a raw HMAC key, and the PEM of three keys",
      [hmac.subarray(3), pem("ed25519"), pem("x25519"), pem("rsa-2048")],
      12,
    ],
  ];
  let vault = "";
  let files: readonly string[] = [];
  before(async () => {
    const server = await startTestServer();
    await mustInit(server);
    const known = {
      ...Object.fromEntries(Object.keys(pairs).map((type) => [type, der(type as keyof typeof pairs)])),
      hmac,
    };
    for (const [type, bytes] of Object.entries(known)) {
      const body = { type, key: Buffer.from(bytes).toString("base64") };
      mustSucceed(await send(server, { method: "POST", path: `/v1/transit/keys/${type}`, body }));
    }
    vault = join(server.vaultPath, "gen-1");
    files = Object.entries(known).flatMap(([type, bytes]) => ["--private-key", `${type}=${file(type, bytes)}`]);
  });

  for (const [what, planted, code] of rows) {
    it(`both programs find keys in a dump with ${what}`, async function () {
      needs(this, hasPython, "Python");
      const memory = randomBytes(40 * 1024);
      for (const [i, bytes] of planted.entries()) Buffer.from(bytes).copy(memory, 4099 + 8192 * i);
      parseHeader(readFileSync(join(vault, "header.json"))).vaultId.copy(memory, 36_001);
      const [header, dump] = [join(vault, "header.json"), file("dump", memory)];
      const ours = await proveDump(header, dump);
      expect(await pythonDump(header, dump, ...files)).to.deep.equal(ours);
      expect(ours.code).to.equal(code);
      const found = Object.entries(ours.known).filter(([name, count]) => name.startsWith("private") && count > 0);
      expect(found.length).to.equal(planted.length);
    });
  }
});

describe("the independent decoder", () => {
  it("the decoder opens headers of both versions, and keys", () => {
    for (const { text, keys } of [headerOfVersion1, headerOfVersion2]) {
      const parsed = parseHeader(Buffer.from(text));
      for (const opener of [passphrase, ...keys, ...keys.map((key) => key.toLowerCase().replaceAll("-", ""))]) {
        const opened = openHeader(parsed, Buffer.from(opener));
        expect(opened !== null && isSigned(parsed, opened.masterKey), opener).to.equal(true);
      }
      expect(openHeader(parsed, Buffer.from("another"))).to.equal(null);
    }
  });

  it("the decoder refuses a header of which a byte of a slot was changed", () => {
    const changed = parseHeader(Buffer.from(headerOfVersion2.text.replace('"recovery"', '"recovers"')));
    const { kek, masterKey } = frozenKeys;
    const [first, second] = changed.slots;
    expect(first && fitsSlot(changed, first, kek)).to.equal(true);
    expect(second && openHeader(changed, Buffer.from(headerOfVersion2.keys[0] ?? ""))).to.equal(null);
    expect(isSigned(changed, masterKey)).to.equal(false);
  });

  it("the decoder computes AES-256 and HMAC-SHA-256 in lanes as Node does", () => {
    const key = randomBytes(32);
    const schedule = new Uint32Array(scheduleWords);
    for (let i = 0; i < 8; i++) schedule[i] = key.readUInt32BE(4 * i);
    expandKey(schedule);
    const block = new Uint32Array(4);
    encryptBlock(schedule, block);
    const expected = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false).update(Buffer.alloc(16));
    expect([...block].map((word) => word >>> 0)).to.deep.equal([0, 4, 8, 12].map((at) => expected.readUInt32BE(at)));
    for (const length of [0, 1, 55, 56, 64, 119, 500]) expectSameHmac(randomBytes(length));
  });
});

function expectSameHmac(message: Uint8Array): void {
  const keys = Array.from({ length: 4 }, () => randomBytes(32));
  const lanes = Uint32Array.from({ length: 32 }, (_, i) => keys[i % 4]?.readUInt32BE(4 * Math.floor(i / 4)) ?? 0);
  const hmacs = new HmacLanes(message.length + 128);
  hmacs.hmac(lanes, hmacs.message(message), lanes);
  for (const [lane, key] of keys.entries()) {
    const expected = createHmac("sha256", key).update(message).digest();
    const words = Array.from({ length: 8 }, (_, i) => lanes[4 * i + lane]);
    expect(words).to.deep.equal(Array.from({ length: 8 }, (_, i) => expected.readUInt32BE(4 * i)));
  }
}
