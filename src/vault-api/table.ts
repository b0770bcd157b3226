/**
 * Router of the API for Vault's clients. There is no state of mounts: the first segment of a path is a top folder, `secret` the
 * whole vault, and the second decides what the path is for.
 */
import type { Target } from "../http/endpoint.js";
import { EndpointTable, type Found, hasParameter, parseQuery } from "../http/routes.js";
import { asksForList, checkingQuery, type VaultEndpoint } from "./members.js";

/** First segments that are no mounts. */
const systems = new Set(["sys", "auth", "identity", "cubbyhole"]);

/** The mount that is the whole vault. */
export const wholeVault = "secret";

export class VaultTable {
  readonly #table: EndpointTable;

  /** In the path of a row, `*` stands for a mount, and the parameter gets the mount's folder in front. */
  constructor(rows: readonly VaultEndpoint[]) {
    this.#table = new EndpointTable(rows.map(checkingQuery));
  }

  get patterns(): readonly string[] {
    return this.#table.patterns;
  }

  find(method: string, target: Target): Found | null {
    const [mount, path] = splitMountPath(target.path);
    const found = this.#table.find(effectiveMethod(method, target.query), { ...target, path });
    if (found === null || mount === null || mount === wholeVault) return found;
    return { ...found, parameter: `${mount}/${found.parameter}` };
  }

  allowedMethods(path: string): readonly string[] {
    return this.#table.allowedMethods(splitMountPath(path)[1]);
  }
}

/** Returns the mount, if the path has one, and the path with `*` in its place. */
function splitMountPath(path: string): readonly [mount: string | null, path: string] {
  const end = path.indexOf("/", 4);
  if (end < 0 || !path.startsWith("/v1/")) return [null, path];
  const mount = path.slice(4, end);
  return systems.has(mount) ? [null, path] : [mount, `/v1/*${path.slice(end)}`];
}

/** Returns POST for PUT, and LIST for GET with `list`, as Vault does. */
function effectiveMethod(method: string, query: string): string {
  if (method === "PUT") return "POST";
  return method === "GET" && query !== "" && isList(query) ? "LIST" : method;
}

function isList(query: string): boolean {
  try {
    return hasParameter(query, "list") && asksForList(parseQuery(query, ["list"]).get("list"));
  } catch {
    return false; // the handler refuses the query
  }
}
