/** The OpenAPI document as a server returns it: with the limits of the server's settings. */
import { damaged, readPackageFile } from "../manifest.js";

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
  let text: string | null = null;
  return () => {
    text ??= JSON.stringify(parsed(source))
      .replaceAll(String(defaults.maxBodyBytes), String(6 * maxValueBytes + 64 * 1024))
      .replaceAll(String(defaults.maxValueBytes), String(maxValueBytes));
    return text;
  };
}

function parsed(source: string): unknown {
  try {
    return JSON.parse(source);
  } catch {
    throw damaged(file);
  }
}
