/** The OpenAPI document as a server returns it: openapi.json with the limits of the server's settings. */
import { readPackageFile } from "../manifest.js";

/** In openapi.json: the largest value in bytes, and the largest body of a put, that follow from the default settings. */
const defaults = { maxValueBytes: 1_048_576, maxBodyBytes: 6_356_992 };

type Settings = { readonly maxValueBytes: number };

/** Returns JSON text. */
export function openApiDocument({ maxValueBytes }: Settings): string {
  const document: unknown = JSON.parse(readPackageFile("openapi.json"));
  return JSON.stringify(document)
    .replaceAll(String(defaults.maxBodyBytes), String(6 * maxValueBytes + 64 * 1024))
    .replaceAll(String(defaults.maxValueBytes), String(maxValueBytes));
}
