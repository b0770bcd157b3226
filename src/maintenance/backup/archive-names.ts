/** Names of the files in an archive. */
import { segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";

export const headerName = "header.json";
export const secretsName = "secrets";

/** As in the home. */
export const auditName = "audit";

/** Returns the path of the secret that a name stands for; null when it stands for none. */
export function pathOfFile(name: string): string | null {
  const [top, ...names] = name.split("/");
  const segments = names.map((each, at) => (at < names.length - 1 ? segmentOfDirectory(each) : segmentOfFile(each)));
  const path = segments.includes(null) ? null : segments.join("/");
  return top === secretsName && path !== null && isSecretPath(path) ? path : null;
}
