/** Table of the engines. An engine's file is loaded when a vault of it is opened. */
import { resolve } from "node:path";
import { isStoreUrl, readStoreUrl } from "../config/readers.js";
import type { Engine } from "./engine.js";

type EngineRow = {
  /** Whether a vault at this place is one of the engine's. */
  readonly takes: (place: string) => boolean;
  readonly load: () => Promise<{ readonly engine: Engine }>;
};

const rows: readonly EngineRow[] = [
  { takes: isStoreUrl, load: () => import("./postgres.js") },
  { takes: () => true, load: () => import("./files.js") },
];

/** `place`: see `Engine`. */
export async function engineFor(place: string): Promise<Engine> {
  const row = rows.find(({ takes }) => takes(place));
  if (row === undefined) throw new Error(`no engine takes ${place}`);
  return (await row.load()).engine;
}

/** Reads a place that a person names. @throws Problem */
export function readPlace(text: string): string {
  return isStoreUrl(text) ? readStoreUrl(text) : resolve(text);
}
