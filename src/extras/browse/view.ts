/** Content of the screen: a title, a list, details of the selected row, and a line for messages, questions and keys. */

import {
  counted,
  displayWidth,
  localDate,
  localMinute,
  type Paint,
  padded,
  printable,
  shortened,
} from "../../cli/kit/output.js";
import type { Metadata, SecretEntry, SecretHistory, SecretVersion, TrashList } from "../../client/client.js";
import type { Catalog } from "./catalog.js";
import type { Line, Size } from "./screen.js";

/** A list on the screen, and what is known of each row. */
export type Pane = {
  readonly title: () => string;
  readonly count: () => number;
  readonly row: (index: number, columns: number) => string;
  readonly details: (index: number) => readonly string[];
  /** Keys and what they do, the most needed first. */
  readonly keys: string;
  selected: number;
  /** The first row that is shown. */
  top: number;
};

/** A line that is being typed: a search, or a reply to a question. */
export type Input = { readonly question: string; text: string };

type Content = {
  readonly pane: Pane;
  /** Shown in place of the details; its lines may be bytes of a value. */
  readonly box: { readonly title: string; readonly lines: readonly Line[] } | null;
  readonly message: { readonly text: string; readonly isProblem: boolean } | null;
  readonly input: Input | null;
};

const [leastRows, leastColumns] = [8, 20];
const mostDetails = 7;

/** How many lines the list and the details have, besides the title, the rule and the last line. */
export function heights({ rows }: Size): { readonly list: number; readonly details: number } {
  const details = Math.min(mostDetails, Math.max(2, Math.floor((rows - 3) / 3)));
  return { list: rows - 3 - details, details };
}

/** Moves the list so that the selected row is on the screen. */
export function keepInSight(pane: Pane, size: Size): void {
  const { list } = heights(size);
  const last = Math.max(0, pane.count() - 1);
  pane.selected = Math.min(Math.max(0, pane.selected), last);
  pane.top = Math.min(Math.max(pane.top, pane.selected - list + 1), pane.selected);
  pane.top = Math.max(0, Math.min(pane.top, pane.count() - list));
}

type Drawn = {
  readonly lines: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number } | null;
};

/** Returns a line for each row of the screen, and where the cursor is shown. */
export function drawScreen({ pane, box, message, input }: Content, size: Size, paint: Paint): Drawn {
  const { rows, columns } = size;
  if (rows < leastRows || columns < leastColumns) return { lines: ["too small"], cursor: null };
  const { list, details } = heights(size);
  const cut = (text: string) => shortened(text, columns);
  const listed = Array.from({ length: list }, (_, i) => {
    const index = pane.top + i;
    if (index >= pane.count()) return "";
    const isSelected = index === pane.selected;
    const text = cut(`${isSelected ? "> " : "  "}${pane.row(index, columns - 2)}`);
    return isSelected ? paint("inverse", padded(text, columns)) : text;
  });
  const about: readonly Line[] = box?.lines ?? (pane.count() === 0 ? [] : pane.details(pane.selected).map(cut));
  const shown = Array.from({ length: details }, (_, i) => about[i] ?? "");
  const question = input === null ? null : tail(`${input.question}${printable(input.text)}`, columns - 1);
  const last =
    question ??
    (message === null ? paint("dim", cut(keysThatFit(pane.keys, columns))) : messageLine(message, cut, paint));
  const lines = [cut(pane.title()), ...listed, titledRule(box?.title ?? "", columns), ...shown, last];
  return { lines, cursor: question === null ? null : { row: rows - 1, column: displayWidth(question) } };
}

function messageLine(
  { text, isProblem }: NonNullable<Content["message"]>,
  cut: (text: string) => string,
  paint: Paint,
) {
  const shown = cut(printable(text));
  return isProblem ? paint("red", shown) : shown;
}

/** Leaves out keys, from the third last on: the last two are the help or the way back, and the end. */
function keysThatFit(keys: string, columns: number): string {
  const shown = keys.split("  ");
  while (shown.length > 2 && displayWidth(shown.join("  ")) > columns) shown.splice(-3, 1);
  return shown.join("  ");
}

/** The end of a text: what is typed is always seen. */
function tail(text: string, columns: number): string {
  let shown = text;
  while (displayWidth(shown) > columns) shown = shown.slice(1);
  return shown;
}

function titledRule(title: string, columns: number): string {
  const label = title === "" ? "" : ` ${shortened(printable(title), columns - 8)} `;
  return `──${label}${"─".repeat(Math.max(0, columns - 2 - displayWidth(label)))}`;
}

/** As `toLocaleString` in English, which loads the data of all languages before the first screen. */
function withCommas(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

const typeWidth = "oauth-token".length;

export function secretsPane(catalog: Catalog, folder: string, now: () => number): Pane {
  const of = () => `${catalog.count === catalog.total ? "" : `${withCommas(catalog.count)} of `}`;
  const place = folder === "" ? "" : ` under ${printable(folder)}`;
  return {
    title: () => {
      const more = catalog.isLoading ? " so far…" : catalog.damaged > 0 ? `, ${catalog.damaged} damaged not shown` : "";
      const secrets = counted(catalog.total, "secret").replace(/^\d+/, withCommas(catalog.total));
      const search = catalog.query === "" ? "" : `  search: ${printable(catalog.query)}`;
      return `Strongroom: ${of()}${secrets}${place}${more}${search}`;
    },
    count: () => catalog.count,
    row: (index, columns) => {
      const entry = catalog.at(index);
      if (entry === undefined) return "";
      const { type = "", expiresAt } = entry.metadata;
      const mark = expiresAt !== undefined && Date.parse(expiresAt) <= now() ? "expired" : type;
      const room = columns - typeWidth - 2;
      return columns < 50 ? printable(entry.path) : `${padded(shortened(printable(entry.path), room), room)}  ${mark}`;
    },
    details: (index) => secretDetails(catalog.at(index)),
    keys: "/ search  r reveal  c copy  o code  v versions  e edit  u undo  ? keys  q quit",
    selected: 0,
    top: 0,
  };
}

function secretDetails(entry: SecretEntry | undefined): string[] {
  if (entry === undefined) return [];
  const { path, encoding, metadata, createdAt, updatedAt, version } = entry;
  return [
    printable(path),
    ...[
      ["type", metadata.type ?? "-"],
      ["description", printable(metadata.description ?? "-")],
      ["expires", metadata.expiresAt === undefined ? "never" : localDate(new Date(metadata.expiresAt))],
      ["value", `${encoding === undefined ? "text, hidden; r reveals it" : "binary; get -o FILE writes it to a file"}`],
      ["version", `${version}, of ${localMinute(new Date(updatedAt))}`],
      ["created", localMinute(new Date(createdAt))],
    ].map(([name = "", text = ""]) => `  ${name.padEnd(11)}  ${text}`),
  ];
}

export type VersionsPane = Pane & { readonly history: SecretHistory };

export function versionsPane(history: SecretHistory): VersionsPane {
  const { path, versions, damaged } = history;
  const unreadable = damaged === undefined ? "" : `, ${damaged} damaged not shown`;
  return {
    history,
    title: () => `Versions of ${printable(path)}: ${versions.length} kept${unreadable}`,
    count: () => versions.length,
    row: (index) => {
      const found = versions[index];
      if (found === undefined) return "";
      const { version, updatedAt, metadata } = found;
      const type = (metadata.type ?? "-").padEnd(typeWidth);
      return `${String(version).padStart(5)}  ${localMinute(new Date(updatedAt))}  ${type}  ${printable(metadata.description ?? "")}`;
    },
    details: (index) => differences(versions[index], versions[index + 1]),
    keys: "r reveal  c copy  u restore this version  Esc back  q quit",
    selected: 0,
    top: 0,
  };
}

export type TrashPane = Pane & { readonly entries: TrashList["entries"] };

export function trashPane(entries: TrashList["entries"], isCut: boolean): TrashPane {
  return {
    entries,
    title: () => `In the trash: ${isCut ? "the first " : ""}${counted(entries.length, "secret")}`,
    count: () => entries.length,
    row: (index) => {
      const found = entries[index];
      return found === undefined ? "" : `${localMinute(new Date(found.deletedAt))}  ${printable(found.path)}`;
    },
    details: (index) => {
      const found = entries[index];
      if (found === undefined) return [];
      const deleted = `  ${"deleted".padEnd(11)}  ${localMinute(new Date(found.deletedAt))}`;
      return [...secretDetails(found).filter((line) => !line.startsWith("  value")), deleted];
    },
    keys: "u bring back  d delete permanently  Esc back  q quit",
    selected: 0,
    top: 0,
  };
}

/** Returns the changes of a version to the metadata of the previous version. */
function differences(version: SecretVersion | undefined, before: SecretVersion | undefined): string[] {
  if (version === undefined) return [];
  const now = shownMetadata(version.metadata, version.encoding);
  if (before === undefined) {
    const title = version.version === 1 ? "the first version" : "the oldest version that is kept";
    return [title, ...now.map(([name, text]) => `  ${name.padEnd(11)}  ${text}`)];
  }
  const then = new Map(shownMetadata(before.metadata, before.encoding));
  const changed = now.filter(([name, text]) => then.get(name) !== text);
  const title = `changed since version ${before.version}:${changed.length === 0 ? " the value only" : ""}`;
  return [
    title,
    ...changed.flatMap(([name, text]) => [
      `  - ${name.padEnd(11)}  ${then.get(name)}`,
      `  + ${name.padEnd(11)}  ${text}`,
    ]),
  ];
}

function shownMetadata(metadata: Metadata, encoding: "base64" | undefined): [string, string][] {
  const { type = "-", description = "-", expiresAt } = metadata;
  return [
    ["type", type],
    ["description", printable(description)],
    ["expires", expiresAt === undefined ? "never" : localMinute(new Date(expiresAt))],
    ["value", encoding === undefined ? "text" : "binary"],
  ];
}
