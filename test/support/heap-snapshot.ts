/** Heap snapshots of a server's two threads, and a search for texts and bytes in them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./clean-up.js";
import type { ServerProcess } from "./process.js";
import { mustStatus } from "./test-client.js";

export type Snapshots = { readonly frontEnd: string; readonly keyWorker: string };

export async function takeSnapshots(server: ServerProcess): Promise<Snapshots> {
  const directory = temporaryDirectory();
  const files = { main: join(directory, "main.heapsnapshot"), worker: join(directory, "worker.heapsnapshot") };
  await server.order({ do: "snapshot", ...files });
  await mustStatus(server);
  return { frontEnd: readFileSync(files.main, "utf8"), keyWorker: readFileSync(files.worker, "utf8") };
}

/** Counts the secret in a snapshot as text, hex, base64 and base64url. */
export function hitsIn(snapshot: string, secret: string | Uint8Array): number {
  const bytes = Buffer.from(secret);
  const forms = [bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")];
  if (typeof secret === "string") forms.push(JSON.stringify(secret).slice(1, -1));
  return [...new Set(forms)].reduce((sum, form) => sum + snapshot.split(form).length - 1, 0);
}
