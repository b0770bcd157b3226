/** Any character for fast-check's strings; its own unit "binary" first fills a map of all of them, in about a second of CPU. */
import fc from "fast-check";

const surrogates = { first: 0xd800, count: 0x800 };

export const codePoint = fc
  .oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0, max: 0x10ffff - surrogates.count }))
  .map((n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count));
