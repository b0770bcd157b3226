/** Path segments made from the names that people have typed: one rule for every format. */
import { fitsFileName } from "../../paths/file-name.js";

/** Most names, which are segments as they are. */
const plain = /^[\w-]{1,80}$/;

/**
 * Returns the segments for a name: a slash makes a folder, except in an address, which is one segment without its scheme.
 * Slashes at ends and empty parts have no meaning. Empty for a name of which nothing is left.
 */
export function segmentsFor(name: string): string[] {
  if (plain.test(name)) return [name];
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

/** A name's file has 255 bytes at most. */
const maxCharacters = 256;

/** A segment is a file's name, whose length is limited, and may get a number. */
function shortened(segment: string): string {
  const fits = (text: string) => fitsFileName(`${text}-100000`);
  if (fits(segment)) return segment;
  const characters = [...segment.slice(0, maxCharacters)];
  while (!fits(`${characters.join("")}…`)) characters.pop();
  return `${characters.join("").trimEnd()}…`;
}
