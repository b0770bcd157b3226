/** Writes of secrets: each makes a new blob of the one before. The functions that do are with their subjects. */
import { fromLatin1, wipe } from "../memory.js";
import type { Refusal, RequestOf, ResultOf, WriteKind, WriteOf, WriteResult } from "../protocol.js";
import { storeRefreshToken, takeToken } from "./computed-tokens.js";
import type { Context, MakerTable, Writing } from "./context.js";
import { kvConfigure, kvWrite } from "./kv.js";
import { takeLogin } from "./logins.js";
import { changeMetadata, copy, move, put } from "./secrets.js";
import { setUses } from "./uses.js";
import { changeVersions, prune, undo } from "./versions.js";

const makers: MakerTable = {
  ...{ put, undo, changeMetadata, move, copy },
  ...{ prune, changeVersions, setUses, takeToken, takeLogin, storeRefreshToken },
  ...{ kvWrite, kvConfigure },
};

export function write({ keyring, ...shared }: Context, request: RequestOf<"write">): ResultOf<"write"> {
  const { path, previous: given, reread } = request;
  try {
    return keyring.withKey((key) => {
      const previous = typeof given === "string" ? fromLatin1(given) : given;
      return make({ ...shared, key, path, previous, reread }, request);
    });
  } finally {
    // A shared body is wiped by its sender, which may ask again.
    if ("body" in request && request.body.buffer instanceof ArrayBuffer) wipe(request.body);
  }
}

function make<K extends WriteKind>(writing: Writing, write: WriteOf<K>): WriteResult | Refusal {
  const maker: MakerTable[K] = makers[write.kind];
  return maker(writing, write);
}
