/** Byte-level JSON reader and writer, compared with JSON.parse and JSON.stringify. */
import { expect } from "chai";
import fc from "fast-check";
import {
  FoundFields,
  JsonObject,
  type JsonValue,
  type ListElement,
  readElements,
  readObject,
  readObjectWithList,
} from "../../workers/json/json-reader.js";
import { JsonText, writeString } from "../../workers/json/json-string.js";
import { utf8, withScratch } from "../../workers/memory.js";
import { codePoint } from "../support/code-points.js";

/** Short in the normal suite; 50,000 in the long form. */
const texts = Number(process.env["STRONGROOM_JSON_TEXTS"] ?? 3_000);

/** Returns what JSON.parse finds in the field, in the reader's terms; undefined when it refuses, null when it is missing. */
function judged(text: string, field: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
  const value: unknown = Object.hasOwn(parsed, field) ? (parsed as Record<string, unknown>)[field] : "absent";
  if (Array.isArray(value)) return "array";
  return typeof value === "object" && value !== null ? "object" : typeof value === "string" ? { text: value } : value;
}

function found(bytes: Uint8Array, field: string): unknown {
  return withScratch(() => read(bytes, field));
}

function read(bytes: Uint8Array, field: string): unknown {
  const fields = readObject(bytes, [field]);
  if (fields === null) return undefined;
  const value: JsonValue | undefined = fields.get(field);
  if (value === undefined) return { text: "absent" };
  if (value instanceof JsonObject) return typeof JSON.parse(Buffer.from(value.bytes).toString());
  if (!(value instanceof JsonText)) return value;
  return value.wellFormed ? { text: value.toString() } : "lone surrogate";
}

function expected(text: string, field: string): unknown {
  const value = judged(text, field);
  const isText = typeof value === "object" && value !== null && "text" in value;
  return isText && !isWellFormed(String(value.text)) ? "lone surrogate" : value;
}

function isWellFormed(text: string): boolean {
  return Buffer.from(text).toString() === text;
}

/** A number is read as itself, or only as a number. */
function agree(text: string): void {
  const value = found(utf8(text), "f");
  const wanted = expected(text, "f");
  if (value === "number") expect(wanted, text).to.be.a("number");
  else expect(value, text).to.deep.equal(wanted);
}

describe("the JSON reader", () => {
  it("the JSON reader reads whole numbers of up to 15 digits, and of others only that they are numbers", () => {
    for (const number of [0, 1, 42, 999_999_999_999_999]) expect(found(utf8(`{"f":${number}}`), "f")).to.equal(number);
    for (const other of ["-1", "1.0", "1e2", "1000000000000000"]) {
      expect(found(utf8(`{"f":${other}}`), "f"), other).to.equal("number");
    }
  });

  it("the JSON reader agrees with JSON.parse on every value, however it is written", () => {
    const spaced = fc.constantFrom(undefined, 1, "\t", "\n ");
    const value = fc.oneof(fc.jsonValue({ stringUnit: codePoint }), fc.string({ unit: codePoint }));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("f", "g", "", "é"), value), spaced, (object, space) => {
        agree(JSON.stringify(object, undefined, space));
        agree(
          JSON.stringify(object, undefined, space).replace(/[f-m]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
        );
      }),
      { numRuns: texts / 5 },
    );
  });

  it("the JSON reader accepts and refuses what JSON.parse does, over texts that are almost JSON", () => {
    const token = fc.constantFrom(
      ...[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"f"',
        '"f":',
        '"',
        "\\",
        "\\u",
        "\\ud83d",
        "\\ude00",
        "\\n",
        "\\x",
        "/",
        " ",
        "\n",
      ],
      ...[
        "true",
        "false",
        "null",
        "nul",
        "0",
        "-",
        "1",
        "01",
        "1.",
        ".5",
        "1e5",
        "1E+5",
        "1e",
        "-0",
        "NaN",
        "\u0000",
        "é",
        "\ufeff",
      ],
    );
    const almost = fc.array(token, { maxLength: 9 }).map((tokens) => tokens.join(""));
    fc.assert(
      fc.property(almost, fc.boolean(), (middle, wrapped) => agree(wrapped ? `{"f":${middle}}` : middle)),
      { numRuns: texts },
    );
  });

  it("the JSON reader agrees with JSON.parse when one character of valid JSON is changed, removed or doubled", () => {
    const json = '{"a":[1,{"b":[]},"x\\u00e9\\\\"],"f":"v\\ud83d\\ude00","c":-1.5e-7,"d":{},"e":true}';
    for (let at = 0; at < json.length; at++) {
      for (const other of ["", '"', "\\", "{", "}", "[", "]", ",", ":", "0", "e", "u", " ", "\n"]) {
        agree(json.slice(0, at) + other + json.slice(at + 1));
        agree(json.slice(0, at) + other + json.slice(at));
      }
    }
  });

  it("the JSON reader refuses invalid UTF-8, as a fatal TextDecoder does", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 6 }), (noise) => {
        const bytes = Buffer.concat([Buffer.from('{"f":"'), noise, Buffer.from('"}')]);
        let text: string | null = null;
        try {
          text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
        } catch {}
        expect(found(bytes, "f")).to.deep.equal(text === null ? undefined : expected(text, "f"));
      }),
      { numRuns: texts / 2 },
    );
  });

  it("a million brackets, open or closed, do not overflow the reader", () => {
    const deep = 1_000_000;
    expect(found(Buffer.from(`{"x":${"[".repeat(deep)}`), "f")).to.equal(undefined);
    const closed = Buffer.from(`{"x":${"[".repeat(deep)}${"]".repeat(deep)},"f":"v"}`);
    expect(found(closed, "f")).to.deep.equal({ text: "v" });
  });

  it("the JSON reader agrees with JSON.parse on nested arrays and objects, with one closer wrong at each depth", () => {
    const opened = '[{"x":'.repeat(300);
    const closers = "}]".repeat(300);
    agree(`{"f":"v","x":${opened}0${closers}}`);
    for (let at = 0; at < closers.length; at++) {
      const wrong = closers[at] === "]" ? "}" : "]";
      agree(`{"f":"v","x":${opened}0${closers.slice(0, at)}${wrong}${closers.slice(at + 1)}}`);
    }
  });

  const arrays: readonly (readonly [string, string, readonly string[] | null])[] = [
    ["the elements as they are written", '{"f": [ 1 , "a,]" , { "b":[2] } ] }', ["1", '"a,]"', '{ "b":[2] }']],
    ["none of an empty array", '{"f":[ ]}', []],
    ["those of the last field of that name", '{"f":[1],"f":[2]}', ["2"]],
    ["null for a last field that is no array", '{"f":[1],"f":{}}', null],
    ["null for a missing field", '{"g":[1]}', null],
    ["null for an array with one element too many", '{"f":[1,2,3,4]}', null],
    ["null for a trailing comma", '{"f":[1,]}', null],
    ["null for an array without its end", '{"f":[1', null],
    ["null for text behind the object", '{"f":[1]}]', null],
  ];
  for (const [what, text, want] of arrays) {
    it(`returns of an array ${what}`, () => {
      const elements = readElements(utf8(text), "f", 3);
      expect(elements?.map(({ start, end }) => text.slice(start, end)) ?? null).to.deep.equal(want);
    });
  }
});

describe("the reader of an object with a list of objects", () => {
  const list = { name: "list", most: 3 };

  function shownValue(value: JsonValue | undefined): unknown {
    return value instanceof JsonText ? { text: value.toString() } : value;
  }

  function shownFields(fields: ListElement): unknown {
    if (!(fields instanceof FoundFields)) return "no object";
    return Object.fromEntries(
      ["f", "g"].flatMap((name) => (fields.has(name) ? [[name, shownValue(fields.get(name))]] : [])),
    );
  }

  function read(text: string): unknown {
    const bytes = utf8(text);
    return withScratch(() => {
      const found = readObjectWithList(bytes, ["f", "g", "list"], list);
      expect(Buffer.from(bytes).toString(), "the source").to.equal(text);
      return found && { fields: shownFields(found.fields), elements: found.elements?.map(shownFields) ?? null };
    });
  }

  const rows: readonly (readonly [string, string, unknown])[] = [
    [
      "fields of the object and of each element, with escapes decoded",
      '{"f":"a","x":{},"list":[ {"f":"\\u0062","y":[1]} , {"g" : true,"f":null}, {} ],"g":7}',
      { fields: { f: { text: "a" }, g: 7 }, elements: [{ f: { text: "b" } }, { g: true, f: null }, {}] },
    ],
    ["the last of equal names", '{"list":[{"f":1,"f":2}],"f":1,"f":2}', { fields: { f: 2 }, elements: [{ f: 2 }] }],
    ["the last list", '{"list":[{"f":1}],"list":[{"f":2}]}', { fields: {}, elements: [{ f: 2 }] }],
    ["no list where the last one is none", '{"list":[{"f":1}],"list":{"f":2}}', { fields: {}, elements: null }],
    ["no list with an element too many", '{"list":[{},{},{},{}],"f":1}', { fields: { f: 1 }, elements: null }],
    [
      "elements that are no objects",
      '{"list":[1,[{"f":1}],"f"]}',
      { fields: {}, elements: Array(3).fill("no object") },
    ],
    ["an empty list", '{"list":[ ]}', { fields: {}, elements: [] }],
    ["nothing of an object without its end", '{"list":[{"f":1}]', null],
    ["nothing of a list with a trailing comma", '{"list":[{"f":1},]}', null],
    ["nothing of an element with a trailing comma", '{"list":[{"f":1,}]}', null],
    ["nothing of an element without its end", '{"list":[{"f":1]}', null],
    ["nothing of an element with a malformed string", '{"list":[{"f":"\\x"}]}', null],
  ];
  for (const [what, text, want] of rows) it(`returns ${what}`, () => expect(read(text)).to.deep.equal(want));

  it("the reader of a list accepts what JSON.parse does, and finds the same objects", () => {
    const value = fc.oneof(fc.string(), fc.nat(), fc.boolean(), fc.constant(null));
    const element = fc.oneof(fc.dictionary(fc.constantFrom("f", "g", "x"), value), value);
    const broken = fc.tuple(
      fc.array(element, { maxLength: 4 }),
      fc.nat(),
      fc.constantFrom("", ",", "]", "}", '"', "1"),
    );
    fc.assert(
      fc.property(broken, ([elements, place, inserted]) => {
        const whole = `${JSON.stringify(elements)}}`;
        const at = place % whole.length;
        const text = `{"list":${whole.slice(0, at)}${inserted}${whole.slice(at)}`;
        const parsed = parsedList(text);
        const found = read(text) as { readonly elements: readonly unknown[] | null } | null;
        expect(found === null, text).to.equal(parsed === null);
        if (parsed === null || found === null) return;
        expect(found.elements, text).to.deep.equal(parsed.length > 3 ? null : parsed.map(wanted));
      }),
      { numRuns: texts / 5 },
    );
  });

  /** Null where the text is not JSON. */
  function parsedList(text: string): readonly unknown[] | null {
    try {
      return (JSON.parse(text) as { readonly list: readonly unknown[] }).list;
    } catch {
      return null;
    }
  }

  function wanted(element: unknown): unknown {
    if (typeof element !== "object" || element === null || Array.isArray(element)) return "no object";
    const shown = (value: unknown) => (typeof value === "string" ? { text: value } : value);
    const read = Object.entries(element).filter(([name]) => name === "f" || name === "g");
    return Object.fromEntries(read.map(([name, value]) => [name, shown(value)]));
  }
});

describe("the JSON writer", () => {
  it("the JSON writer writes strings byte for byte as JSON.stringify does", () => {
    const text = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.string({ unit: fc.integer({ min: 0, max: 0x7f }).map((c) => String.fromCharCode(c)) }),
    );
    fc.assert(
      fc.property(text, (value) => {
        fc.pre(isWellFormed(value));
        expect(withScratch(() => Buffer.from(writeString(utf8(value))).toString())).to.equal(JSON.stringify(value));
      }),
      { numRuns: texts / 2 },
    );
  });
});
