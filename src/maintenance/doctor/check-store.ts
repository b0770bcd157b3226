/** Check of a vault in a database: header, client tokens, and every blob, through the store's interface. */
import type { Bytes } from "../../../workers/protocol.js";
import { tokenDocuments } from "../../access/stored-tokens.js";
import { VaultError } from "../../errors.js";
import { isSecretPath } from "../../paths/secret-path.js";
import { readPages, type SecretStore, type Space, spaces } from "../../storage/secret-store.js";
import { trashedHeadBytes } from "../../storage/trashed-blob.js";
import { headBytes } from "../offline-keys.js";
import { faultMessages, innerOutline, opensNotingExpiry, unopened } from "./check-blobs.js";
import { examineTokenDocuments, type FoundTokens } from "./check-records.js";
import { type VaultFacts, whatIsWrong } from "./check-vaults.js";
import type { FindingCode } from "./finding.js";
import type { Inspection } from "./inspection.js";

/** Each check holds a whole blob in memory. */
const blobsAtOnce = 16;

const findOut = "find out who writes to the database";

const fromBackup = "restore a backup into another database, or delete the secret";

export async function examineStore(inspection: Inspection, store: SecretStore): Promise<VaultFacts> {
  const { vaultPath } = store;
  const header = await store.header();
  const owner = store.shared?.foreignOwner;
  if (owner) inspection.report({ code: "foreign-owner", path: vaultPath, ...owner, fix: null });
  for (const message of (await store.shared?.foreignRows()) ?? []) {
    inspection.report({ code: "foreign-row", path: vaultPath, message, remedy: findOut, fix: null });
  }
  if (header === null) return { current: null, kept: [], secrets: 0 };
  if (await inspection.keys.understands(header)) await inspection.keys.unlock(vaultPath, header);
  else inspection.report({ code: "header-damaged", path: `${vaultPath} header`, ...whatIsWrong(header), fix: null });
  const isOpened = inspection.keys.opened === vaultPath;
  const tokens: FoundTokens[] = [];
  for (const name of tokenDocuments) {
    const document = await store.readDocument(name);
    tokens.push({ path: `${vaultPath} document ${name}`, bytes: document?.bytes ?? null });
  }
  await examineTokenDocuments(inspection, tokens, isOpened);
  let secrets = 0;
  for (const space of spaces) {
    const found = await examineSpace(inspection, store, space, isOpened);
    if (space === "secrets") secrets = found;
  }
  return { current: vaultPath, kept: [], secrets };
}

/** Returns the number of blobs. */
async function examineSpace(
  inspection: Inspection,
  store: SecretStore,
  space: Space,
  isOpened: boolean,
): Promise<number> {
  const counted = await store.count(space);
  inspection.progress.expect(counted);
  let found = 0;
  const list = (after: string) => store.list("", after, blobsAtOnce, space);
  for await (const paths of readPages(list, blobsAtOnce)) {
    await Promise.all(paths.map((path) => examineBlob(inspection, store, space, path, isOpened)));
    found += paths.length;
  }
  if (found !== counted && space === "secrets") reportCount(inspection, store, counted, found);
  return found;
}

async function examineBlob(
  inspection: Inspection,
  store: SecretStore,
  space: Space,
  path: string,
  isOpened: boolean,
): Promise<void> {
  inspection.progress.step();
  const what = { secrets: "secret", trash: "deleted secret", keys: "key" }[space];
  const report = (code: FindingCode, message: string, remedy = fromBackup) =>
    inspection.report({ code, path: `${store.vaultPath} ${what} ${path}`, message, remedy, fix: null });
  if (!isSecretPath(path)) {
    return report("forbidden-path", "its path is not one that the server writes", findOut);
  }
  const blob = await readable(() => store.read(path, undefined, space));
  if (blob === null) return; // deleted since
  if (typeof blob === "string") return report("unreadable", blob);
  const [fault] = await inspection.keys.findFaults([innerOutline(space, blobOutline(blob))]);
  if (fault) report("blob-damaged", faultMessages[fault]);
  else if (isOpened && !(await opensNotingExpiry(inspection, space, path, blob))) report("secret-damaged", unopened);
}

/** Returns why it cannot be read. */
async function readable<T>(read: () => Promise<T>): Promise<T | string> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof VaultError && (error.code === "INTEGRITY" || error.code === "UNAVAILABLE"))
      return error.message;
    throw error;
  }
}

function blobOutline(blob: Bytes) {
  return { head: blob.slice(0, trashedHeadBytes + headBytes), length: blob.length };
}

function reportCount(inspection: Inspection, { vaultPath }: SecretStore, counted: number, found: number): void {
  const message = `its count says ${counted} secrets, but there are ${found}: rows were added or removed by hand`;
  const remedy = `${findOut}; a migration to an empty database corrects the count`;
  inspection.report({ code: "count-wrong", path: vaultPath, message, remedy, fix: null });
}
