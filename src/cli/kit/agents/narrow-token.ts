/** Tokens of commands that run for long, which need less than the root token can do. */
import { randomBytes } from "node:crypto";
import type { StrongroomClient } from "../../../client/client.js";

type Rights = Parameters<StrongroomClient["createToken"]>[1];

/** Makes a token with these rights where the client has the root token; returns null for any other token, to be used as it is. */
export async function makeNarrowToken(
  client: StrongroomClient,
  prefix: string,
  rights: Rights,
): Promise<{ readonly name: string; readonly token: string } | null> {
  const { name: current } = await client.showSelf();
  if (current !== "root") return null;
  const name = `${prefix}-${randomBytes(6).toString("hex")}`;
  const { token } = await client.createToken(name, rights);
  return { name, token };
}
