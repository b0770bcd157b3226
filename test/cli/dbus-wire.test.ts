/** D-Bus messages: what is written is read again, byte for byte as an independent encoder, and nothing malformed is read. */
import { expect } from "chai";
import fc from "fast-check";
import {
  MalformedMessage,
  messageLength,
  readMessage,
  typesIn,
  type Value,
  Variant,
  writeMessage,
} from "../../src/cli/kit/dbus/wire.js";

const call = { type: 1, flags: 0, serial: 1, path: "/a/b", member: "M", interface: "x.Y", destination: "d.E" } as const;

type Typed = { readonly type: string; readonly value: Value };

const integer = (type: string, min: number, max: number) =>
  fc.integer({ min, max }).map((value): Typed => ({ type, value }));
const text = fc.string({ unit: "grapheme" }).filter((each) => !each.includes("\0"));

const { any } = fc.letrec<{ any: Typed; basic: Typed }>((tie) => ({
  basic: fc.oneof(
    integer("y", 0, 255),
    integer("n", -32768, 32767),
    integer("q", 0, 65535),
    integer("i", -(2 ** 31), 2 ** 31 - 1),
    integer("u", 0, 2 ** 32 - 1),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value): Typed => ({ type: "x", value })),
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value): Typed => ({ type: "t", value })),
    fc.double({ noNaN: true }).map((value): Typed => ({ type: "d", value })),
    fc.boolean().map((value): Typed => ({ type: "b", value })),
    text.map((value): Typed => ({ type: "s", value })),
    fc.stringMatching(/^(?:\/[A-Za-z0-9_]{1,9}){1,3}$/).map((value): Typed => ({ type: "o", value })),
    fc.constantFrom("", "a{sv}", "(oayays)", "aai").map((value): Typed => ({ type: "g", value })),
    fc.uint8Array({ maxLength: 40 }).map((value): Typed => ({ type: "ay", value })),
  ),
  any: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("basic"),
    tie("any").map(({ type, value }): Typed => ({ type: "v", value: new Variant(type, value) })),
    fc.array(tie("any"), { minLength: 1, maxLength: 3 }).map(
      (members): Typed => ({
        type: `(${members.map(({ type }) => type).join("")})`,
        value: members.map(({ value }) => value),
      }),
    ),
    fc
      .tuple(tie("any"), fc.integer({ min: 0, max: 3 }))
      .map(
        ([{ type, value }, count]): Typed =>
          type === "y" ? { type, value } : { type: `a${type}`, value: Array(count).fill(value) },
      ),
    fc.tuple(text, tie("any")).map(([key, { type, value }]): Typed => ({ type: `a{s${type}}`, value: [[key, value]] })),
  ),
}));

const bodies = fc
  .array(any, { maxLength: 4 })
  .map((values) => ({ signature: values.map(({ type }) => type).join(""), body: values.map(({ value }) => value) }))
  .filter(({ signature }) => signature.length < 250);

/** Bytes of equal content compare as equal, whatever memory they are in. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  if (value instanceof Variant) return { variant: value.signature, of: plain(value.value) };
  if (Array.isArray(value)) return value.map(plain);
  return Object.is(value, -0) ? "-0" : value;
}

describe("messages of D-Bus", () => {
  it("a message is read as it was written", () => {
    fc.assert(
      fc.property(bodies, ({ signature, body }) => {
        const bytes = writeMessage({ ...call, signature, body });
        expect(messageLength(bytes, 2 ** 27)).to.equal(bytes.length);
        const read = readMessage(bytes);
        expect(plain(read.body)).to.deep.equal(plain(body));
        expect(read).to.include({ ...call, signature });
      }),
    );
  });

  it("a message that was changed or cut anywhere is read as another one, or refused", () => {
    const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.boolean());
    fc.assert(
      fc.property(bodies, change, ({ signature, body }, [at, byte, isCut]) => {
        const bytes = writeMessage({ ...call, signature, body });
        bytes[at % bytes.length] = byte;
        try {
          readMessage(isCut ? bytes.slice(0, at % bytes.length) : bytes);
        } catch (error) {
          if (!(error instanceof MalformedMessage)) throw error;
        }
      }),
    );
  });

  /** Calls that jeepney 0.9 wrote: what is in them, in little and big byte order. */
  const written: readonly (readonly [readonly [string, readonly Value[]], string, string])[] = [
    [
      ["(oayays)", [["/s/1", Uint8Array.of(0, 1), new Uint8Array(17).fill(255), "text/plain"]]],
      [
        "6c0100013b000000070000004e00000001016f00040000002f612f62000000000201730003000000782e5900000000000301",
        "7300010000004d000000000000000601730003000000642e4500000000000801670008286f61796179732900000004000000",
        "2f732f3100000000020000000001000011000000ffffffffffffffffffffffffffffffffff0000000a000000746578742f70",
        "6c61696e00",
      ].join(""),
      [
        "420100010000003b000000070000004e01016f00000000042f612f62000000000201730000000003782e5900000000000301",
        "7300000000014d000000000000000601730000000003642e4500000000000801670008286f61796179732900000000000004",
        "2f732f3100000000000000020001000000000011ffffffffffffffffffffffffffffffffff0000000000000a746578742f70",
        "6c61696e00",
      ].join(""),
    ],
    [
      [
        "a{sv}b",
        [
          [
            ["k", new Variant("s", "é")],
            ["n", new Variant("i", -5)],
            ["a", new Variant("a{ss}", [["x", "y"]])],
          ],
          true,
        ],
      ],
      [
        "6c0100015c000000070000004c00000001016f00040000002f612f62000000000201730003000000782e5900000000000301",
        "7300010000004d000000000000000601730003000000642e4500000000000801670006617b73767d6200000000004e000000",
        "00000000010000006b0001730000000002000000c3a9000000000000010000006e00016900000000fbffffff010000006100",
        "05617b73737d000000000e000000000000000100000078000000010000007900000001000000",
      ].join(""),
      [
        "420100010000005c000000070000004c01016f00000000042f612f62000000000201730000000003782e5900000000000301",
        "7300000000014d000000000000000601730000000003642e4500000000000801670006617b73767d6200000000000000004e",
        "00000000000000016b0001730000000000000002c3a9000000000000000000016e00016900000000fffffffb000000016100",
        "05617b73737d000000000000000e000000000000000178000000000000017900000000000001",
      ].join(""),
    ],
    [
      ["yqnuixtd", [200, 65535, -2, 2 ** 32 - 1, -3, -(2n ** 62n), 2n ** 63n, 1.5]],
      [
        "6c01000128000000070000004e00000001016f00040000002f612f62000000000201730003000000782e5900000000000301",
        "7300010000004d000000000000000601730003000000642e450000000000080167000879716e7569787464000000c800ffff",
        "feff0000fffffffffdffffff00000000000000c00000000000000080000000000000f83f",
      ].join(""),
      [
        "4201000100000028000000070000004e01016f00000000042f612f62000000000201730000000003782e5900000000000301",
        "7300000000014d000000000000000601730000000003642e450000000000080167000879716e7569787464000000c800ffff",
        "fffe0000fffffffffffffffdc00000000000000080000000000000003ff8000000000000",
      ].join(""),
    ],
    [
      ["a{o(oayays)}as", [[], []]],
      [
        "6c0100010c000000070000005400000001016f00040000002f612f62000000000201730003000000782e5900000000000301",
        "7300010000004d000000000000000601730003000000642e450000000000080167000e617b6f286f6179617973297d617300",
        "00000000000000000000000000000000",
      ].join(""),
      [
        "420100010000000c000000070000005401016f00000000042f612f62000000000201730000000003782e5900000000000301",
        "7300000000014d000000000000000601730000000003642e450000000000080167000e617b6f286f6179617973297d617300",
        "00000000000000000000000000000000",
      ].join(""),
    ],
  ];
  for (const [[signature, body], ...orders] of written) {
    it(`a message of ${signature} is read as an independent encoder wrote it, in both byte orders`, () => {
      for (const hex of orders) {
        const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
        expect(messageLength(bytes, 2 ** 27)).to.equal(bytes.length);
        expect(plain(readMessage(bytes).body)).to.deep.equal(plain(body));
        expect(readMessage(bytes)).to.include({ ...call, serial: 7 });
      }
      const own = writeMessage({ ...call, serial: 7, signature, body });
      const length = new DataView(own.buffer).getUint32(4, true);
      expect(Buffer.from(own.subarray(-length)).toString("hex")).to.equal(orders[0].slice(-2 * length));
    });
  }

  const wrong: readonly (readonly [string, string])[] = [
    ["an unknown type", "z"],
    ["an array without elements' type", "a"],
    ["an empty structure", "()"],
    ["an open structure", "(s"],
    ["a dictionary's entry alone", "{ss}"],
    ["a dictionary with a key that is no basic type", "a{vs}"],
    ["33 arrays in each other", `${"a".repeat(33)}s`],
    ["33 structures in each other", `${"(".repeat(33)}s${")".repeat(33)}`],
    ["256 types", "s".repeat(256)],
  ];
  for (const [what, signature] of wrong) {
    it(`a signature with ${what} is refused`, () => {
      expect(() => typesIn(signature)).to.throw(MalformedMessage);
    });
  }

  it("a message of more bytes than are permitted is refused by its first 16 bytes", () => {
    const bytes = writeMessage({ ...call, signature: "", body: [] });
    new DataView(bytes.buffer).setUint32(4, 2 ** 27, true);
    expect(() => messageLength(bytes, 2 ** 23)).to.throw(MalformedMessage);
  });
});
