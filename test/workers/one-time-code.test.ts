/** One-time codes (TOTP) against the vectors of RFC 6238. */
import { expect } from "chai";
import { utf8, withScratch } from "../../workers/memory.js";
import { type OneTimeCode, oneTimeCode, type UnusableSeed } from "../../workers/transit/one-time-code.js";
import { stringsMadeBy } from "../support/made-strings.js";

/** RFC 6238, appendix B: the ASCII digits 1 to 0, repeated up to the hash's length, in base32. */
const keys = {
  SHA1: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
  SHA256: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA",
  SHA512: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA",
} as const;

const vectors: readonly (readonly [keyof typeof keys, number, string])[] = [
  ["SHA1", 59, "94287082"],
  ["SHA256", 59, "46119246"],
  ["SHA512", 59, "90693936"],
  ["SHA1", 1_111_111_109, "07081804"],
  ["SHA256", 1_111_111_109, "68084774"],
  ["SHA512", 1_111_111_109, "25091201"],
  ["SHA1", 20_000_000_000, "65353130"],
  ["SHA256", 20_000_000_000, "77737706"],
  ["SHA512", 20_000_000_000, "47863826"],
];

function codeAt(seconds: number, value: string): OneTimeCode | null {
  const found = foundAt(seconds, value);
  return found === null || "problem" in found ? null : found;
}

function foundAt(seconds: number, value: string): OneTimeCode | UnusableSeed | null {
  return withScratch(() => oneTimeCode(utf8(value), seconds * 1000));
}

describe("one-time codes", () => {
  for (const [algorithm, seconds, code] of vectors) {
    it(`a code agrees with RFC 6238: ${algorithm} at ${seconds} s`, () => {
      const url = `otpauth://totp/Issuer:me?secret=${keys[algorithm]}&issuer=Issuer&algorithm=${algorithm}&digits=8`;
      expect(codeAt(seconds, url)?.code).to.equal(code);
    });
  }

  it("a base32 secret gives 6 digits every 30 seconds, however it is spelled", () => {
    const spellings = [keys.SHA1, ` ${keys.SHA1.toLowerCase()}\n`, keys.SHA1.replace(/.{4}/g, "$& "), `${keys.SHA1}==`];
    for (const value of spellings) {
      expect(codeAt(59, value)).to.deep.equal({ code: "287082", validFor: 1, period: 30, isUrl: false });
    }
  });

  it("the period of an otpauth URL is honoured", () => {
    const url = `otpauth://totp/me?secret=${keys.SHA1}&period=60&digits=8`;
    expect(codeAt(119, url)).to.deep.equal({ code: "94287082", validFor: 1, period: 60, isUrl: true });
    expect(codeAt(60, url)?.validFor).to.equal(60);
  });

  const [key, spaced] = [keys.SHA1, keys.SHA1.replace(/.{4}(?=.)/g, "$&+")];
  const spellings: Record<string, readonly [value: string, code: string]> = {
    "upper case": [`OTPAUTH://TOTP/X:u?SECRET=${key}`, "287082"],
    "spaces written as +": [`otpauth://totp/X:u?secret=${spaced}&issuer=X`, "287082"],
    "spaces written as %20": [`otpauth://totp/X:u?secret=${spaced.replaceAll("+", "%20")}`, "287082"],
    "empty members": [`otpauth://totp/X:u?secret=${key}&algorithm=&digits=&period=`, "287082"],
    "no label": [`otpauth://totp?secret=${key}&digits=8`, "94287082"],
    "an empty label": [`otpauth://totp/?digits=8&secret=${key}`, "94287082"],
    "members of other programs": [`otpauth://totp/X?secret=${key}&icon=a&image=b&lock=false#c`, "287082"],
    "KeeOtp's members": [`key=${key}&size=8&step=30`, "94287082"],
    "KeeOtp's members in another order": [`key=${key}&type=Totp&otpHashMode=Sha1&step=30&size=8`, "94287082"],
    "KeeOtp's key in hex": ["key=3132333435363738393031323334353637383930&encoding=Hex&size=8", "94287082"],
    "KeeOtp's key in Base64": ["key=MTIzNDU2Nzg5MDEyMzQ1Njc4OTA%3d&encoding=Base64&size=8", "94287082"],
    "KeeOtp's key in Base64 with a plus": ["key=++++MTIzNDU2Nzg5++++&encoding=Base64&size=8", "37376396"],
    "KeeOtp's key in UTF-8": ["key=12345678901234567890&encoding=UTF8&size=8", "94287082"],
    "Steam's URL": [`steam://${key}`, "PV9M4"],
    "the type steam": [`otpauth://steam/Steam:u?secret=${key}&digits=5`, "PV9M4"],
    "KeePassXC's encoder for Steam": [`otpauth://totp/S:u?secret=${key}&period=30&digits=5&encoder=steam`, "PV9M4"],
  };
  for (const name of ["HMAC-SHA-256", "HmacSHA256", "hmac_sha256", "SHA-256", "sha256"]) {
    spellings[`the algorithm ${name}`] = [
      `otpauth://totp/X?secret=${keys.SHA256}&digits=8&algorithm=${name}`,
      "46119246",
    ];
  }
  for (const [what, [value, code]] of Object.entries(spellings)) {
    it(`a code is computed from ${what}`, () => expect(codeAt(59, value)?.code).to.equal(code));
  }

  const url = `otpauth://totp/me?secret=${keys.SHA1}`;
  const refused: Readonly<Record<string, readonly [string, RegExp | null]>> = {
    "a counter": [`otpauth://hotp/me?secret=${keys.SHA1}&counter=1`, /counter-based \(HOTP\)/],
    "KeeOtp's counter": [`key=${keys.SHA1}&type=Hotp&counter=1`, /counter-based \(HOTP\)/],
    "KeeOtp's key in another encoding": [`key=${keys.SHA1}&encoding=Rot13`, /encoding must be Base32, Base64/],
    "KeeOtp's key in half a hex digit": ["key=313233343536373839303132333435363738393&encoding=Hex", null],
    "another type": [`otpauth://yaotp/me?secret=${keys.SHA1}`, /type must be totp/],
    "another encoder": [`otpauth://totp/me?secret=${keys.SHA1}&encoder=other`, /encoder must be steam/],
    "Google's export of several seeds": ["otpauth-migration://offline?data=CjEK", /several seeds/],
    "a password that begins with key=": ["key=hunter2", null],
    "Steam's URL without a secret": ["steam://", /secret is missing/],
    "no secret": ["otpauth://totp/me?digits=6", /secret is missing/],
    "no fields": ["otpauth://totp/me", /secret is missing/],
    "an unknown algorithm": [`${url}&algorithm=MD4`, /algorithm must be SHA1, SHA256 or SHA512/],
    "an algorithm that every object has": [`${url}&algorithm=constructor`, /algorithm must be/],
    "a password": ["hunter2 hunter8", null],
    "an empty value": ["", null],
    "5 digits": [`${url}&digits=5`, /digits must be 6 to 8/],
    "9 digits": [`${url}&digits=9`, /digits must be 6 to 8/],
    "digits that are no decimal number": [`${url}&digits=0x8`, /digits must be 6 to 8/],
    "a period of 0": [`${url}&period=0`, /period must be 1 to 3600 seconds/],
    "a period of two hours": [`${url}&period=7200`, /period must be 1 to 3600 seconds/],
    "a period with an exponent": [`${url}&period=1e3`, /period must be 1 to 3600 seconds/],
    "a malformed escape in its secret": ["otpauth://totp/me?secret=%GEZDGNBVGY3TQOJQ", /not in base32/],
    "more than 4096 bytes": [`${url}${"&".repeat(4096)}`, null],
  };
  for (const [what, [value, problem]] of Object.entries(refused)) {
    it(`a code is not computed from ${what}`, () => {
      const found = foundAt(59, value);
      if (problem === null) expect(found).to.equal(null);
      else expect(found).to.have.property("problem").that.matches(problem);
    });
  }
});

describe("URLs of one-time codes", () => {
  const secret = "another-secret-where-a-seed-should-be";
  const urls = ["algorithm", "digits", "period", "secret", "issuer"].map((field) => `${field}=${secret}`);

  for (const field of [...urls, `${secret}=1`, secret.slice(0, 16), `${secret.slice(0, 16)}=1`]) {
    it(`a one-time code's URL becomes no string where it has ?${field}`, () => {
      const value = utf8(`otpauth://totp/me?x=1&${field}`);
      const made = stringsMadeBy(() => withScratch(() => oneTimeCode(value, 0)));
      expect(made.filter((text) => text.includes(secret.slice(0, 16)))).to.deep.equal([]);
    });
  }
});
