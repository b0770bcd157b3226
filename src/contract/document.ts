/** The OpenAPI document as a server returns it: with the limits of the server's settings and the commit of its build. */
import { damaged, readCommit, readPackageFile } from "../manifest.js";

/** The document of the build, made from openapi.yaml. */
const file = "dist/openapi.json";

/** In that document: the largest value in bytes, and the largest body of a put, that follow from the default settings. */
const defaults = { maxValueBytes: 1_048_576, maxBodyBytes: 6_356_992 };

type Settings = { readonly maxValueBytes: number };

/**
 * Reads the document now, and makes its JSON text at the first call: most servers are never asked for it. That call throws
 * a StartError when the document is damaged.
 */
export function openApiDocument({ maxValueBytes }: Settings): () => string {
  const source = readPackageFile(file);
  const commit = readCommit(); // now: an installation may replace the file later
  let text: string | null = null;
  return () => {
    text ??= JSON.stringify(withCommit(parsed(source), commit))
      .replaceAll(String(defaults.maxBodyBytes), String(6 * maxValueBytes + 64 * 1024))
      .replaceAll(String(defaults.maxValueBytes), String(maxValueBytes));
    return text;
  };
}

type Document = { readonly info?: object };

function withCommit(document: Document, commit: string | null): Document {
  return commit === null ? document : { ...document, info: { ...document.info, "x-commit": commit } };
}

function parsed(source: string): Document {
  try {
    return JSON.parse(source) as Document;
  } catch {
    throw damaged(file);
  }
}
