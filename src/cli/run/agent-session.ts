/** Session of a program at the broker: what it may use, by flags or by the project file, its start and its end. */
import type { Agent, StrongroomClient } from "../../client/client.js";
import { scopePaths } from "../kit/args/paths.js";
import type { ConnectionFlags } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable, say } from "../kit/output.js";
import { findProject } from "./project.js";

export type SessionFlags = ConnectionFlags & {
  readonly use?: readonly string[];
  readonly allowHost?: readonly string[];
  readonly egress?: "any" | "listed";
  /** Milliseconds. */
  readonly ttl?: number;
  readonly placeholder?: readonly string[];
};

/** Returns the flags, with what the project file says where they do not. @throws CommandFailure usage */
export async function withProject<T extends SessionFlags>(io: Io, flags: T): Promise<T> {
  return { ...(await projectFlags(io, flags)), ...flags };
}

/**
 * Returns what the project file says, unless flags say it. It must be allowed also where it has no [agent]: a program that
 * removed the table would otherwise get more secrets at its next run. @throws CommandFailure usage
 */
async function projectFlags(io: Io, { use, allowHost }: SessionFlags): Promise<SessionFlags> {
  if (use !== undefined || allowHost !== undefined) return {};
  const { agent: found = null } = (await findProject(io)) ?? {};
  if (found === null) return {};
  const { use: paths, allowHosts, placeholders } = found;
  return {
    ...(paths.length > 0 && { use: paths }),
    ...(allowHosts.length > 0 && { allowHost: allowHosts }),
    ...(placeholders.length > 0 && { placeholder: placeholders }),
  };
}

/** @throws CommandFailure notFound, where the program could send no request */
export async function mustHaveUses(
  client: StrongroomClient,
  { use, allowHost = [], egress }: SessionFlags,
): Promise<void> {
  for (const path of use ?? [undefined]) {
    const { uses } = await client.listUses(path === undefined || path === "/" ? {} : { prefix: path });
    const isBound = uses.some((one) => path === undefined || one.path === path || path.endsWith("/"));
    const isNeeded = path !== undefined || (allowHost.length === 0 && egress !== "any");
    if (isBound || !isNeeded) continue;
    const which = path === undefined ? "no secret" : `--use ${printable(path)}: no secret there`;
    throw new CommandFailure("notFound", `${which} is bound to a host: bind one with  strongroom use add`);
  }
}

export function createSession(client: StrongroomClient, { use, allowHost, egress, ttl }: SessionFlags): Promise<Agent> {
  return client.createAgent({
    ...(use && { paths: scopePaths(use) }),
    ...(allowHost && { allowHosts: allowHost }),
    ...(egress && { egress }),
    ...(ttl !== undefined && { ttlSeconds: Math.ceil(ttl / 1000) }),
  });
}

/** A server that has stopped no longer has the session. */
export async function revokeSession(io: Io, client: StrongroomClient, { name }: Agent): Promise<void> {
  await client.revokeToken(name).catch(() => {
    say(io, `warning: the session's token could not be revoked: strongroom token revoke ${name}\n`);
  });
}
