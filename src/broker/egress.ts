/** Which addresses the broker may connect to: public ones, unless a binding says `private`. */
import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";

/** Loopback, private, link-local (cloud metadata among them), shared, reserved, multicast and translation ranges. */
const notPublic: readonly (readonly [network: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 9],
  ["ff00::", 8],
];

const blocked = new BlockList();
for (const [network, prefix] of notPublic) blocked.addSubnet(network, prefix, isIPv6(network) ? "ipv6" : "ipv4");

/** Whether an IP address is reachable on the public Internet. An IPv4 address mapped to IPv6 is judged as IPv4. */
function isPublic(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return isPublic(mapped);
  const family = isIP(address);
  if (family === 0) return false;
  return !blocked.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** Returns all addresses of a host name, in the resolver's order. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, order: "verbatim" });
  return found.map(({ address }) => address);
};

/** The host has no address that the broker may connect to. */
export class EgressError extends Error {
  override readonly name = "EgressError";
}

/**
 * Returns the addresses to connect to. The connection must use these and not look the name up again: a second look-up
 * could return another address (DNS rebinding).
 * @throws EgressError when one of them is not public: which one a program reaches must not depend on the order
 */
export async function resolveAddresses(
  host: string,
  allowsPrivate: boolean,
  resolve: Resolve,
): Promise<readonly string[]> {
  const addresses = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
  if (addresses.length === 0) throw new EgressError("the host name cannot be resolved");
  if (!allowsPrivate && !addresses.every(isPublic)) {
    throw new EgressError(
      "the host resolves to a private, loopback or link-local address: only a binding with --private reaches it",
    );
  }
  return addresses;
}
