/** One-time codes (TOTP, RFC 6238) from what an issuer shows: an `otpauth://totp/` URL or a secret in base32. */
import { Secret, TOTP, URI } from "otpauth";
import { CommandFailure } from "../session/exit-codes.js";

export type OneTimeCode = {
  readonly code: string;
  /** Seconds for which the code is still valid. */
  readonly secondsLeft: number;
  /** Seconds. */
  readonly period: number;
};

/** Returns the code of that moment. @throws CommandFailure usage, which never quotes the value */
export function oneTimeCode(
  value: string,
  { now, where }: { readonly now: number; readonly where: string },
): OneTimeCode {
  const generator = generatorFrom(value.trim(), where);
  const { period } = generator;
  return {
    code: generator.generate({ timestamp: now }),
    secondsLeft: period - (Math.floor(now / 1000) % period),
    period,
  };
}

export function isUrlOfCodes(value: string): boolean {
  return /^otpauth:/i.test(value.trim());
}

function generatorFrom(text: string, where: string): TOTP {
  if (/^otpauth:\/\/hotp\//i.test(text)) {
    throw new CommandFailure("usage", `${where} counts its codes (HOTP): only codes by time (TOTP) are supported`);
  }
  const generator = isUrlOfCodes(text) ? fromUrl(text) : fromBase32(text);
  if (generator === null) {
    throw new CommandFailure("usage", `${where} is neither an otpauth:// URL nor a base32 secret`);
  }
  return generator;
}

/** DANGER: the library's errors may quote the URL, secret included. */
function fromUrl(url: string): TOTP | null {
  try {
    const parsed = URI.parse(url);
    return parsed instanceof TOTP && parsed.secret.bytes.length > 0 ? parsed : null;
  } catch {
    return null;
  }
}

/** Issuers show the secret in groups, in small letters, with or without padding; 16 characters are 80 bits. */
function fromBase32(text: string): TOTP | null {
  const compact = text.replace(/[\s-]/g, "").replace(/=+$/, "").toUpperCase();
  return /^[A-Z2-7]{16,}$/.test(compact) ? new TOTP({ secret: Secret.fromBase32(compact) }) : null;
}
