/**
 * ECDSA over P-256 (FIPS 186-5) of a digest that was computed elsewhere: `node:crypto` signs and verifies messages only, which
 * it hashes itself. Points are multiplied by OpenSSL where a secret is involved.
 *
 * The secret scalars stay bytes in scratch memory, multiplied without branches on them. The inverse of the nonce is taken of
 * its product with a random blind, which tells nothing of it.
 */
import { createECDH } from "node:crypto";
import { bytesFrom, scratch } from "../memory.js";
import { makePrivatePart, p256Order as order } from "./private-keys.js";

const size = 32;
const prime = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
const base = {
  x: 0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  y: 0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
  z: 1n,
};
const orderBytes = bytesFrom(...digits(order));

/** Returns r ‖ s. */
export function signDigest(scalar: Uint8Array, digest: Uint8Array): Uint8Array {
  const nonce = makePrivatePart("ecdsa-p256");
  const blind = makePrivatePart("ecdsa-p256");
  const r = mod(bigIntFromBytes(multipleOfBase(nonce).subarray(1, 1 + size)), order);
  const blindNonce = bigIntFromBytes(multiply(blind, nonce));
  const sum = multiply(scalar, bytesFrom(...digits(r)));
  add(sum, bytesFrom(...digits(mod(digestNumber(digest), order))), 0xff);
  const s = mod(bigIntFromBytes(multiply(blind, sum)) * inverse(blindNonce, order), order);
  // Either is zero once in 2^256 signatures.
  return r === 0n || s === 0n ? signDigest(scalar, digest) : bytesFrom(...digits(r), ...digits(s));
}

/** Verifies r ‖ s. `publicPoint`: uncompressed, on the curve. */
export function verifyDigest(publicPoint: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== 2 * size) return false;
  const r = bigIntFromBytes(signature.subarray(0, size));
  const s = bigIntFromBytes(signature.subarray(size));
  if (r === 0n || s === 0n || r >= order || s >= order) return false;
  const factor = inverse(s, order);
  const point = {
    x: bigIntFromBytes(publicPoint.subarray(1, 1 + size)),
    y: bigIntFromBytes(publicPoint.subarray(1 + size)),
    z: 1n,
  };
  const sum = sumOfMultiples(mod(digestNumber(digest) * factor, order), base, mod(r * factor, order), point);
  if (sum.z === 0n) return false;
  const zInverse = inverse(sum.z, prime);
  return mod(mod(sum.x * zInverse * zInverse, prime), order) === r;
}

function multipleOfBase(scalar: Uint8Array): Uint8Array {
  const curve = createECDH("prime256v1");
  curve.setPrivateKey(scalar);
  return curve.getPublicKey(null, "uncompressed");
}

/** The leftmost 256 bits. */
function digestNumber(digest: Uint8Array): bigint {
  return bigIntFromBytes(digest.subarray(0, size));
}

/** Returns a · b modulo the order; both are below it. */
function multiply(a: Uint8Array, b: Uint8Array): Uint8Array {
  const product = scratch(size);
  for (let bit = 0; bit < 8 * size; bit++) {
    add(product, product, 0xff);
    add(product, a, -(((b[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) & 0xff);
  }
  return product;
}

/** Adds the other to the sum modulo the order, where the mask is 0xff, and zero where it is 0. */
function add(sum: Uint8Array, other: Uint8Array, mask: number): void {
  let carry = 0;
  for (let i = size - 1; i >= 0; i--) {
    carry += (sum[i] ?? 0) + ((other[i] ?? 0) & mask);
    sum[i] = carry;
    carry >>= 8;
  }
  subtractOrder(sum, -isAtLeastOrder(sum, carry) & 0xff);
}

function isAtLeastOrder(sum: Uint8Array, carry: number): number {
  let borrow = 0;
  for (let i = size - 1; i >= 0; i--) borrow = ((sum[i] ?? 0) - (orderBytes[i] ?? 0) - borrow) >>> 31;
  return carry | (borrow ^ 1);
}

function subtractOrder(sum: Uint8Array, mask: number): void {
  let borrow = 0;
  for (let i = size - 1; i >= 0; i--) {
    const difference = (sum[i] ?? 0) - ((orderBytes[i] ?? 0) & mask) - borrow;
    sum[i] = difference;
    borrow = difference >>> 31;
  }
}

/** Jacobian coordinates; the point at infinity has z = 0. Everything from here on is public. */
type Point = { readonly x: bigint; readonly y: bigint; readonly z: bigint };

const infinity: Point = { x: 1n, y: 1n, z: 0n };

function sumOfMultiples(a: bigint, p: Point, b: bigint, q: Point): Point {
  const both = addPoints(p, q);
  let sum = infinity;
  for (let bit = 255n; bit >= 0n; bit--) {
    sum = doublePoint(sum);
    const term = [infinity, p, q, both][Number(((a >> bit) & 1n) + 2n * ((b >> bit) & 1n))] ?? infinity;
    sum = addPoints(sum, term);
  }
  return sum;
}

/** dbl-2001-b of the Explicit-Formulas Database, for a = -3. */
function doublePoint({ x, y, z }: Point): Point {
  if (z === 0n || y === 0n) return infinity;
  const delta = mod(z * z, prime);
  const gamma = mod(y * y, prime);
  const beta = mod(x * gamma, prime);
  const alpha = mod(3n * (x - delta) * (x + delta), prime);
  const x3 = mod(alpha * alpha - 8n * beta, prime);
  const z3 = mod((y + z) * (y + z) - gamma - delta, prime);
  return { x: x3, y: mod(alpha * (4n * beta - x3) - 8n * gamma * gamma, prime), z: z3 };
}

/** add-2007-bl of the same. */
function addPoints(p: Point, q: Point): Point {
  if (p.z === 0n) return q;
  if (q.z === 0n) return p;
  const zz1 = mod(p.z * p.z, prime);
  const zz2 = mod(q.z * q.z, prime);
  const u1 = mod(p.x * zz2, prime);
  const s1 = mod(p.y * q.z * zz2, prime);
  const h = mod(q.x * zz1 - u1, prime);
  const slope = mod(2n * (q.y * p.z * zz1 - s1), prime);
  if (h === 0n) return slope === 0n ? doublePoint(p) : infinity;
  const i = mod(4n * h * h, prime);
  const j = mod(h * i, prime);
  const v = mod(u1 * i, prime);
  const x = mod(slope * slope - j - 2n * v, prime);
  const z = mod(((p.z + q.z) * (p.z + q.z) - zz1 - zz2) * h, prime);
  return { x, y: mod(slope * (v - x) - 2n * s1 * j, prime), z };
}

function mod(value: bigint, modulus: bigint): bigint {
  const rest = value % modulus;
  return rest < 0n ? rest + modulus : rest;
}

/** Returns the inverse by Euclid's extended algorithm. */
function inverse(value: bigint, modulus: bigint): bigint {
  let [r, next, t, nextT] = [modulus, mod(value, modulus), 0n, 1n];
  while (next !== 0n) {
    const quotient = r / next;
    [r, next, t, nextT] = [next, r - quotient * next, nextT, t - quotient * nextT];
  }
  return mod(t, modulus);
}

function bigIntFromBytes(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return value;
}

function digits(value: bigint): number[] {
  return Array.from({ length: size }, (_, i) => Number((value >> BigInt(8 * (size - 1 - i))) & 0xffn));
}
