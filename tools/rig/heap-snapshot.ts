/** Heap snapshots of a server's two threads, and a search for texts and bytes in them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./clean-up.js";
import { PatternSearch } from "./pattern-search.js";
import type { ServerProcess } from "./process.js";
import { mustStatus } from "./test-client.js";

type Snapshots = { readonly frontEnd: Uint8Array; readonly keyWorker: Uint8Array };

export async function takeSnapshots(server: ServerProcess): Promise<Snapshots> {
  const directory = temporaryDirectory();
  const files = { main: join(directory, "main.heapsnapshot"), worker: join(directory, "worker.heapsnapshot") };
  await server.order({ do: "snapshot", ...files });
  await mustStatus(server);
  return { frontEnd: readFileSync(files.main), keyWorker: readFileSync(files.worker) };
}

/** Counts the secrets in a snapshot as text, hex, base64 and base64url. */
export function hitsIn(snapshot: Uint8Array, ...secrets: readonly (string | Uint8Array)[]): number {
  const forms = [...new Set(secrets.flatMap(encodedForms))].map((form) => ({ bytes: Buffer.from(form) }));
  let hits = 0;
  new PatternSearch(forms).search(snapshot, () => hits++);
  return hits;
}

function encodedForms(secret: string | Uint8Array): string[] {
  const bytes = Buffer.from(secret);
  const forms = [bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")];
  return typeof secret === "string" ? [...forms, JSON.stringify(secret).slice(1, -1)] : forms;
}
