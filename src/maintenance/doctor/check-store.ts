/** Check of a vault in a database: header, client tokens, and every secret, through the store's interface. */
import type { Bytes } from "../../../workers/protocol.js";
import { documentName } from "../../access/token-record.js";
import { isSecretPath } from "../../paths/secret-path.js";
import type { SecretStore } from "../../storage/secret-store.js";
import { faultMessages, unopened } from "./check-blobs.js";
import type { VaultFacts } from "./check-generations.js";
import { whatIsWrong } from "./check-header.js";
import { examineTokenDocument } from "./check-tokens.js";
import type { FindingCode } from "./finding.js";
import type { Inspection } from "./inspection.js";
import { headBytes } from "./offline-keys.js";

/** Each holds a whole secret in memory. */
const secretsAtOnce = 16;

const fromBackup = "restore a backup into another database, or delete the secret";

export async function examineStore(inspection: Inspection, store: SecretStore): Promise<VaultFacts> {
  const { vaultPath } = store;
  const header = await store.header();
  if (header === null) return { current: null, kept: [], secrets: 0 };
  if (await inspection.keys.understands(header)) await inspection.keys.unlock(vaultPath, header);
  else inspection.report({ code: "header-damaged", path: `${vaultPath} header`, ...whatIsWrong(header), fix: null });
  const isOpened = inspection.keys.opened === vaultPath;
  const tokens = await store.readDocument(documentName);
  const tokensPath = `${vaultPath} document ${documentName}`;
  if (tokens !== null) await examineTokenDocument(inspection, tokensPath, tokens.bytes, isOpened);
  const secrets = await examineSecrets(inspection, store, isOpened);
  return { current: vaultPath, kept: [], secrets };
}

/** Returns the number of secrets. */
async function examineSecrets(inspection: Inspection, store: SecretStore, isOpened: boolean): Promise<number> {
  const counted = await store.count();
  inspection.progress.expect(counted);
  let found = 0;
  for (let after = ""; ; ) {
    const paths = await store.list("", after, secretsAtOnce);
    await Promise.all(paths.map((path) => examineSecret(inspection, store, path, isOpened)));
    found += paths.length;
    const last = paths.at(-1);
    if (last === undefined) break;
    after = last;
  }
  if (found !== counted) reportCount(inspection, store, counted, found);
  return found;
}

async function examineSecret(
  inspection: Inspection,
  store: SecretStore,
  path: string,
  isOpened: boolean,
): Promise<void> {
  inspection.progress.step();
  const report = (code: FindingCode, message: string, remedy = fromBackup) =>
    inspection.report({ code, path: `${store.vaultPath} secret ${path}`, message, remedy, fix: null });
  if (!isSecretPath(path)) {
    return report(
      "forbidden-path",
      "its path is not one that the server writes",
      "find out who writes to the database",
    );
  }
  const blob = await store.read(path);
  if (blob === null) return; // deleted meanwhile
  const [fault] = await inspection.keys.faultsOf([outlineOf(blob)]);
  if (fault) report("blob-damaged", faultMessages[fault]);
  else if (isOpened && !(await inspection.keys.opens(path, blob))) report("secret-damaged", unopened);
}

function outlineOf(blob: Bytes) {
  return { head: blob.slice(0, headBytes), length: blob.length };
}

function reportCount(inspection: Inspection, { vaultPath }: SecretStore, counted: number, found: number): void {
  const message = `its count says ${counted} secrets, but there are ${found}: rows were added or removed by hand`;
  const remedy = "find out who writes to the database; a migration to an empty database corrects the count";
  inspection.report({ code: "count-wrong", path: vaultPath, message, remedy, fix: null });
}
