/** Names of the files in an archive. */
import { segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";
import { type Space, spaces } from "../../storage/secret-store.js";

export const headerName = "header.json";

/** As in the home. */
export const auditName = "audit";

/** The directories of the spaces, sorted. */
export const spaceNames = spaces.map((space) => `${space}/`).sort();

/** Returns the place of the blob that a name stands for; null when it stands for none. */
export function placeOfFile(name: string): { readonly space: Space; readonly path: string } | null {
  const [top, ...names] = name.split("/");
  const space = spaces.find((each) => each === top);
  const segments = names.map((each, at) => (at < names.length - 1 ? segmentOfDirectory(each) : segmentOfFile(each)));
  const path = segments.includes(null) ? null : segments.join("/");
  return space !== undefined && path !== null && isSecretPath(path) ? { space, path } : null;
}

/** Longer than any name of a backup that is worth reading in a message. */
const shownLength = 256;

/** Returns a name from an archive for a message. */
export function shownName(name: string): string {
  return JSON.stringify(name.length > shownLength ? `${name.slice(0, shownLength)}…` : name);
}
