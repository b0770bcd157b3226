/**
 * Who may do what with transit keys, by the table of requests: every operation by every caller on every type of key, inside and
 * outside of the caller's paths, unlocked and locked. And random requests, whose responses never show a private part.
 */
import { createPrivateKey, randomBytes } from "node:crypto";
import { expect } from "chai";
import { shareTestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustCreateToken,
  mustInit,
  mustLock,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { wrapFileKey } from "../support/age-stanza.js";
import { Random, runSeed } from "../support/random.js";
import { type ApiRequest, rowAt } from "../support/requests.js";

/** The long form sends 10,000. */
const randomRequests = Number(process.env["STRONGROOM_TRANSIT_REQUESTS"] ?? 80);

const types = ["aes256-gcm96", "ed25519", "ecdsa-p256", "x25519", "rsa-2048", "hmac"] as const;
type KeyType = (typeof types)[number];

const callers = {
  encrypter: ["encrypt"],
  decrypter: ["decrypt"],
  signer: ["sign"],
  reader: ["get", "list"],
  writer: ["put", "delete"],
  user: ["use"],
} as const;
type Caller = keyof typeof callers | "root";
const allCallers: readonly Caller[] = ["root", ...(Object.keys(callers) as (keyof typeof callers)[])];

const base64 = (data: string | Uint8Array) => Buffer.from(data).toString("base64");
const input = base64("message");
/** Made with each key before the matrix, so that every use has something to work on. */
type Made = { stanza?: object; ciphertext?: string; signature?: string; hmac?: string };

type Operation = {
  readonly row: ApiRequest;
  readonly body?: (made: Made) => object;
  readonly works: readonly KeyType[];
};

const encrypting: readonly KeyType[] = ["aes256-gcm96", "rsa-2048"];
const signing: readonly KeyType[] = ["ed25519", "ecdsa-p256", "rsa-2048"];
const macs: readonly KeyType[] = ["aes256-gcm96", "hmac"];
const ciphertextBody = ({ ciphertext = "vault:v1:AAAA" }: Made) => ({ ciphertext });
const row = (at: string) => rowAt(at.replace(" ", " /v1/transit/"));

/** Rows of the table, and the types of keys for which each works. */
const operations: Readonly<Record<string, Operation>> = {
  encrypt: { row: row("POST encrypt/:name"), body: () => ({ plaintext: input }), works: encrypting },
  decrypt: { row: row("POST decrypt/:name"), body: ciphertextBody, works: encrypting },
  unwrap: { row: row("POST unwrap/:name"), body: ({ stanza = {} }) => stanza, works: ["x25519"] },
  rewrap: { row: row("POST rewrap/:name"), body: ciphertextBody, works: encrypting },
  datakey: { row: row("POST datakey/:name"), body: () => ({}), works: encrypting },
  sign: { row: row("POST sign/:name"), body: () => ({ input }), works: signing },
  verify: {
    row: row("POST verify/:name"),
    body: ({ signature = "vault:v1:AAAA" }) => ({ input, signature }),
    works: signing,
  },
  hmac: { row: row("POST hmac/:name"), body: () => ({ input }), works: macs },
  "verify a MAC": {
    row: row("POST verify/:name"),
    body: ({ hmac = "vault:v1:AAAA" }) => ({ input, hmac }),
    works: macs,
  },
  show: { row: row("GET keys/:name"), works: types },
  rotate: { row: row("POST keys/:name/rotate"), body: () => ({}), works: types },
  config: { row: row("POST keys/:name/config"), body: () => ({ minDecryptionVersion: 1 }), works: types },
  export: { row: row("GET export/:name"), works: [] },
  delete: { row: row("DELETE keys/:name"), works: [] },
};

describe("rights to transit keys", () => {
  const server = shareTestServer();
  const tokens = new Map<Caller, string>();
  const made = new Map<string, Made>();

  const ask = (name: string, { row: { method, target }, body }: Operation, caller: Caller): Promise<ApiResponse> => {
    const token = tokens.get(caller);
    const content = body && { body: body(made.get(name) ?? {}) };
    return send(server(), {
      method,
      path: `/v1/${target.replace("{subject}", name)}`,
      ...content,
      ...(token !== undefined && { token }),
    });
  };

  before(async () => {
    await mustInit(server());
    for (const [name, can] of Object.entries(callers)) {
      tokens.set(name as Caller, (await mustCreateToken(server(), { name, can, paths: ["in/"] })).token);
    }
    for (const type of types) for (const root of ["in", "out"]) await create(`${root}/${type}`, type);
  });

  async function create(name: string, type: KeyType): Promise<void> {
    const { versions } = mustSucceed(
      await send(server(), { method: "POST", path: `/v1/transit/keys/${name}`, body: { type } }),
    );
    const { publicKey = "" } = (versions as Record<string, { readonly publicKey?: string }>)["1"] ?? {};
    const results: Made = type === "x25519" ? { stanza: wrapFileKey(publicKey, randomBytes(16)) } : {};
    for (const title of ["encrypt", "sign", "hmac"]) {
      const operation = operations[title];
      if (operation?.works.includes(type)) Object.assign(results, mustSucceed(await ask(name, operation, "root")));
    }
    made.set(name, results);
  }

  /** The status that the documents promise. */
  function expected({ row: { may }, works }: Operation, caller: Caller, root: string, type: KeyType): number {
    if (caller !== "root") {
      const can: readonly string[] = callers[caller];
      if (typeof may === "string" || !may.some((scope) => can.includes(scope)) || root === "out") return 403;
    }
    return works.includes(type) ? 200 : 400;
  }

  for (const [title, operation] of Object.entries(operations)) {
    it(`rights to ${title} are those of the oracle`, async () => {
      const found: Record<string, number> = {};
      const promised: Record<string, number> = {};
      for (const caller of allCallers) {
        for (const root of ["in", "out"]) {
          for (const type of types) {
            const row = `${caller} ${root}/${type}`;
            promised[row] = expected(operation, caller, root, type);
            found[row] = (await ask(`${root}/${type}`, operation, caller)).status;
          }
        }
      }
      expect(found).to.deep.equal(promised);
    });
  }

  it("a response does not show whether a key outside of the paths exists", async () => {
    for (const [title, operation] of Object.entries(operations)) {
      const bodies = await Promise.all(
        ["out/ed25519", "out/none"].map(async (name) => {
          const { status, json } = await ask(name, operation, "signer");
          return JSON.stringify([status, json]).replaceAll(name, "NAME");
        }),
      );
      expect(bodies[0], title).to.equal(bodies[1]);
    }
  });

  it("a locked vault gives none of the callers a right", async () => {
    await mustLock(server());
    try {
      for (const operation of Object.values(operations)) {
        for (const caller of allCallers) {
          const { status, json } = await ask("in/ed25519", operation, caller);
          const isAllowed = expected(operation, caller, "in", "ed25519") !== 403;
          expect([status, json["code"]]).to.deep.equal(isAllowed ? [403, "VAULT_LOCKED"] : [403, "FORBIDDEN"]);
        }
      }
    } finally {
      await mustUnlock(server());
    }
  });

  it(`${randomRequests} random requests show no private part`, async function () {
    this.timeout(600_000);
    const random = new Random(runSeed);
    const known = await knownKeys(async (name, type, key) => {
      const body = { type, key: base64(key) };
      mustSucceed(await send(server(), { method: "POST", path: `/v1/transit/keys/${name}`, body }));
    });
    const names: [string, ...string[]] = ["in/none", ...known.keys(), ...types.map((type) => `in/${type}`)];
    const verbs = Object.values(operations).filter(({ row: { method } }) => method !== "DELETE") as [
      Operation,
      ...Operation[],
    ];
    const needles = [...known.values()].flat();
    for (let n = 0; n < randomRequests; n++) {
      const operation = random.pick(verbs);
      const name = random.pick(names);
      const request = { ...operation, ...(operation.body && { body: () => randomBody(random, made.get(name) ?? {}) }) };
      const { status, text } = await ask(name, request, random.pick(["root", "encrypter", "decrypter", "signer"]));
      expect(status, `seed ${runSeed}`).to.be.lessThan(500);
      for (const needle of needles)
        expect(text.includes(needle), `seed ${runSeed}, ${operation.row.at} ${name}`).to.equal(false);
    }
  });
});

/** Keys whose private parts are known here, by name, with the forms in which a response might show them. */
async function knownKeys(
  importKey: (name: string, type: KeyType, key: Uint8Array) => Promise<void>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { generateKeyPairSync } = await import("node:crypto");
  const der = { type: "pkcs8", format: "der" } as const;
  const privateKeys: Readonly<Record<KeyType, Buffer>> = {
    "aes256-gcm96": randomBytes(32),
    hmac: randomBytes(32),
    ed25519: generateKeyPairSync("ed25519").privateKey.export(der),
    "ecdsa-p256": generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(der),
    x25519: generateKeyPairSync("x25519").privateKey.export(der),
    "rsa-2048": generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export(der),
  };
  const found = new Map<string, readonly string[]>();
  for (const type of types) {
    const key = privateKeys[type];
    await importKey(`in/known-${type}`, type, key);
    found.set(`in/known-${type}`, privateForms(type, key));
  }
  return found;
}

/** Pieces of the private numbers in base64 (each of the three alignments), base64url and hex. */
function privateForms(type: KeyType, key: Buffer): readonly string[] {
  const numbers = type === "aes256-gcm96" || type === "hmac" ? [key] : privateNumbers(key);
  return numbers.flatMap((bytes) => {
    const starts = [0, 1, 2].map((start) => bytes.subarray(start, start + 15));
    return [...starts.map((piece) => base64(piece)), base64(bytes), bytes.toString("base64url"), bytes.toString("hex")];
  });
}

function privateNumbers(der: Buffer): readonly Buffer[] {
  const { d, p, q, dp, dq, qi } = createPrivateKey({ key: der, type: "pkcs8", format: "der" }).export({
    format: "jwk",
  });
  return [d, p, q, dp, dq, qi].flatMap((number) => (number === undefined ? [] : [Buffer.from(number, "base64url")]));
}

/** A body that means something, nothing, or nearly something. */
function randomBody(random: Random, { ciphertext, signature, hmac }: Made): object {
  const values: readonly [() => unknown, ...(() => unknown)[]] = [
    () => base64(randomBytes(random.below(300))),
    () => ciphertext ?? "vault:v1:AAAA",
    () => signature ?? hmac ?? "vault:v1:AAAA",
    () => `vault:v${random.below(3)}:${base64(randomBytes(random.below(400)))}`,
    () => random.chance(0.5),
    () => random.below(3),
    () => random.pick(["jws", "asn1", "pss", "pkcs1v15", "sha2-256", "sha2-512", "none", ""]),
    () => null,
  ];
  const names = [
    "plaintext",
    "ciphertext",
    "input",
    "aad",
    "signature",
    "hmac",
    "keyVersion",
    "bits",
    "hash",
    "prehashed",
    "marshaling",
    "signatureAlgorithm",
    "minDecryptionVersion",
    "deletionAllowed",
    "exportable",
    "key",
    "privateKey",
    "type",
  ] as const; // prettier-ignore
  const one = () =>
    Object.fromEntries(names.filter(() => random.chance(0.3)).map((name) => [name, random.pick([...values])()]));
  return random.chance(0.2) ? { batch: [one(), one(), one()] } : one();
}
