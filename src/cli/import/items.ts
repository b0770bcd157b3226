/**
 * Items of other programs' files: each becomes a folder, named by its title, with a secret for each field that is not empty.
 * Names, seeds of one-time codes, and fields of one name are treated here, alike for every format.
 */
import {
  type ImportEntry,
  type Item,
  joinSources,
  type Mark,
  oneTimeMark,
  type ParsedSource,
  type Refused,
} from "./entry.js";
import { isKept, segmentsFor } from "./names.js";
import { isSeedUrl, readSeed } from "./seeds.js";

export type SourceItem = {
  /** Place in the source, for messages. */
  readonly origin: string;
  /** Folders, from the outermost; a slash in one makes a further folder. */
  readonly folders: readonly string[];
  readonly title: string;
  readonly fields: readonly Field[];
  /** Parts that a vault cannot hold, such as `its files`. */
  readonly leftOut?: readonly string[];
  readonly refused?: readonly Refused[];
  readonly created?: string;
  readonly id?: string;
};

/** A field; an empty one is none. */
export type Field = {
  /** Where it is stored in the item's folder: `["fields", "PIN"]`. */
  readonly name: readonly string[];
  readonly value: string;
  /** Tells it from another field of the same name. */
  readonly label?: string;
  /** `seed`: only a seed of one-time codes is stored. */
  readonly kind?: "password" | "seed";
};

/** Returns a field of the names that all formats share: only these have a kind. */
export function standardField(name: string, value: string, label?: string): Field {
  const kind = name === "password" ? "password" : name === "totp" ? "seed" : undefined;
  return { name: [name], value, ...(kind && { kind }), ...(label && { label }) };
}

export function readSecrets(items: Iterable<SourceItem>): ParsedSource {
  return joinSources(Array.from(items, readItem));
}

function readItem(source: SourceItem): ParsedSource {
  const { origin, leftOut = [] } = source;
  const { seeds, others, refused } = sortedFields(source);
  const fields = [...others, ...placedSeeds(seeds)].filter(({ value }) => value !== "");
  const item = makeItem(source);
  const isEmpty = fields.length === 0 && refused.length === 0 && (source.refused ?? []).length === 0;
  return {
    found: withDistinctPaths(fields, item),
    refused: [...(source.refused ?? []), ...refused],
    leftOut: [...leftOut, ...(isEmpty ? ["it has only a title"] : [])].map((what) => `${origin}: ${what}`),
    remarks: [],
  };
}

function makeItem({ origin, folders, title, fields, created = "", id = "" }: SourceItem): Item {
  const shown = segmentsFor(title).length > 0 ? title : substituteTitle(fields);
  const path = [...folders, shown].flatMap(segmentsFor).join("/");
  return { path, created, id, origin, isRenamed: shown !== title || ![...folders, title].every(isKept) };
}

/** An item without a title is named by the host of its address, else by its user. */
function substituteTitle(fields: readonly Field[]): string {
  const [url = "", user = ""] = ["url", "username"].map((name) => {
    return fields.find((field) => field.name.length === 1 && field.name[0] === name)?.value ?? "";
  });
  const [address = ""] = url.trim().split(/\s/);
  const host = (URL.canParse(address) && new URL(address).host) || address;
  return [host, user].find((name) => segmentsFor(name).length > 0) ?? "untitled";
}

type PlacedSeed = Field & { readonly codes: string };

/** Seeds are checked: a code by other settings than the program's must never be shown. */
function sortedFields({ fields, origin }: SourceItem) {
  const seeds: PlacedSeed[] = [];
  const others: Field[] = [];
  const refused: Refused[] = [];
  for (const field of fields) {
    if (field.value === "") continue;
    if (field.kind !== "seed" && !isSeedUrl(field.value)) {
      others.push(field);
      continue;
    }
    const seed = readSeed(field.value);
    if ("problem" in seed) {
      refused.push({
        origin: `${origin}, ${shownName(field)}`,
        problem: `no one-time code can be computed: ${seed.problem}`,
      });
    } else seeds.push({ ...field, ...seed, kind: "seed" });
  }
  return { seeds, others, refused };
}

function shownName({ name, label }: Field): string {
  return label === undefined || label === "" ? name.join("/") : `${name.join("/")} (${label})`;
}

/** Programs write one seed in several spellings; different ones for `totp` keep their labels. */
function placedSeeds(seeds: readonly PlacedSeed[]): Field[] {
  const main = new Map<string, Field>();
  for (const seed of seeds.filter(isMain)) if (!main.has(seed.codes)) main.set(seed.codes, seed);
  const others = seeds.filter((seed) => !isMain(seed));
  return [
    ...seeds.filter((seed) => main.get(seed.codes) === seed).map((seed) => withLabel(seed, main.size > 1)),
    ...others,
  ];
}

function isMain({ name }: Field): boolean {
  return name[0] === "totp";
}

function withLabel(seed: Field, isOneOfSeveral: boolean): Field {
  const { name, label = "" } = seed;
  return isOneOfSeveral && label !== "" ? { ...seed, name: [...name, label] } : seed;
}

/** Fields of one name get its label as a further segment, or else a number. */
function withDistinctPaths(fields: readonly Field[], item: Item): ImportEntry[] {
  const wanted = new Set(fields.map((field) => pathIn(item, field.name)));
  const used = new Set<string>();
  const numbers = new Map<string, number>();
  return fields.map((field) => {
    const path = freePath(field, { item, wanted, used, numbers });
    used.add(path);
    return { path, value: field.value, ...makeMark(field), origin: `${item.origin}, ${shownName(field)}`, item };
  });
}

type Placement = {
  readonly item: Item;
  readonly wanted: ReadonlySet<string>;
  readonly used: ReadonlySet<string>;
  /** The last number that was tried for a path: an item may have 50,000 fields of one name. */
  readonly numbers: Map<string, number>;
};

function freePath({ name, label = "" }: Field, { item, wanted, used, numbers }: Placement): string {
  const path = pathIn(item, name);
  if (!used.has(path)) return path;
  const labelled = label === "" || name.at(-1) === label ? path : pathIn(item, [...name, label]);
  if (!used.has(labelled) && !wanted.has(labelled)) return labelled;
  for (let n = numbers.get(labelled) ?? 2; ; n++) {
    const numbered = `${labelled}-${n}`;
    if (used.has(numbered) || wanted.has(numbered)) continue;
    numbers.set(labelled, n + 1);
    return numbered;
  }
}

function pathIn(item: Item, name: readonly string[]): string {
  const segments = name.flatMap((each) => {
    const own = segmentsFor(each);
    return own.length === 0 ? ["unnamed"] : own;
  });
  return [item.path, ...segments].join("/");
}

function makeMark({ kind }: Field): Mark {
  if (kind === "seed") return oneTimeMark;
  return kind === "password" ? { type: "password" } : {};
}
