/** Path segments made from the names that people have typed: one rule for every format. */
import { fitsFileName } from "../../paths/file-name.js";

/**
 * Returns the segments for a name: a slash makes a folder, except in an address, which is one segment without its scheme.
 * Slashes at ends and empty parts have no meaning. Empty for a name of which nothing is left.
 */
export function segmentsFor(name: string): string[] {
  const [scheme = ""] = /^\s*[a-z][a-z0-9+.-]*:\/\//i.exec(name) ?? [];
  const parts = name.slice(scheme.length).split("/");
  const segments = parts.map(validSegment).filter((segment) => segment !== "");
  return scheme === "" || segments.length === 0 ? segments : [shortened(segments.join("-"))];
}

/** Whether a name's segments are the name itself, but for white space and composed characters. */
export function isKept(name: string): boolean {
  const typed = name
    .split("/")
    .map((part) => part.trim())
    .join("/");
  return segmentsFor(name).join("/") === typed.normalize("NFC");
}

function validSegment(part: string): string {
  const text = part
    .normalize("NFC")
    .replace(/\p{Cs}/gu, "\ufffd")
    .replaceAll("\\", "-")
    .replace(/\p{Cc}+/gu, " ")
    .trim();
  if (text === "." || text === "..") return text.replaceAll(".", "dot");
  return shortened(text);
}

/** A segment is a file's name, whose length is limited. */
function shortened(segment: string): string {
  if (fitsFileName(segment)) return segment;
  const characters = [...segment];
  while (!fitsFileName(`${characters.join("")}…`)) characters.pop();
  return `${characters.join("").trimEnd()}…`;
}
