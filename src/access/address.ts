/** Client addresses, and what counts as one for a lockout. */
import { ipKeyGenerator } from "express-rate-limit";

/** Expects an address as the system reports it. */
export function isLoopback(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/i.test(address);
}

/** Returns an IPv4 address whole, also when mapped into IPv6, and an IPv6 address by its /64. */
export function keyOfAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return ipKeyGenerator(mapped?.[1] ?? address.replace(/%.*$/, ""), 64);
}

/** Returns one key for all loopback addresses: any local user may bind any of them. */
export function keyOfOrigin(address: string): string {
  return isLoopback(address) ? "loopback" : keyOfAddress(address);
}
