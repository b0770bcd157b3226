/** Environment of a program that uses the broker: its proxy, its certificate authority, and nothing of ours. */
import type { Agent } from "../../client/client.js";
import { type TokenPlace, withoutTokens } from "../kit/programs/without-tokens.js";

const proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

const own = ["localhost", "127.0.0.1", "::1"];

/** A value that tools accept where they want a credential before they send a request. */
const placeholder = "strongroom-broker-placeholder";

/**
 * @param trust variables that name certificate files, see `writeTrust`
 * @param placeholders names of variables that the program wants to be set
 * @param place of the token that this command uses
 */
export function agentEnvironment(
  ours: NodeJS.ProcessEnv,
  { token, port, uses }: Agent,
  trust: Readonly<Record<string, string>>,
  placeholders: readonly string[],
  place: TokenPlace,
): NodeJS.ProcessEnv {
  const kept = Object.entries(withoutTokens(ours, place)).filter(([name]) => !name.startsWith("STRONGROOM_"));
  const proxy = `http://strongroom:${token}@127.0.0.1:${port}`;
  // A local development server is reached directly, unless a secret is bound to it.
  const direct = own.filter((name) => !uses.some(({ host }) => host === name)).join(",");
  return {
    ...Object.fromEntries(kept),
    ...all(proxies, proxy),
    ...all(["NO_PROXY", "no_proxy"], direct),
    ...trust,
    NODE_USE_ENV_PROXY: "1",
    PERL_LWP_ENV_PROXY: "1",
    AGENT_TOKEN: token,
    ...all(placeholders, placeholder),
  };
}

function all(names: readonly string[], value: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, value]));
}
