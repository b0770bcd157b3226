/** A vault of the first format version, which every later version must read. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../support/clean-up.js";
import { passphrase, startTestServer } from "../support/server.js";
import { mustGet, mustList, mustUnlock } from "../support/test-client.js";

/** Files by name below the vault's directory. */
const files: Readonly<Record<string, Buffer>> = {
  current: Buffer.from("gen-1\n"),
  "gen-1/header.json": Buffer.from(
    [
      '{"format":"strongroom","version":1,"vaultId":"abDXTqwym-d1jvcQUShvTg","createdAt":"2026-03-01T12:00:',
      '00.000Z","kdf":{"name":"scrypt","logN":14,"r":8,"p":1,"salt":"n0O6NdgaeP0QMXWPrj8Jaw"},"wrappedKey":',
      '"ovwbl8yb2yTvIHN3_8l-JJRekYW8T2mGlDjAnBohFA8","mac":"ndDhyQLpHX9KeN6V0ipln08J44qN2xuucYCG9dGURKo"}',
      "\n",
    ].join(""),
  ),
  "gen-1/secrets/gr%c3%bc%c3%9fe/%43on.sealed": Buffer.from(
    [
      "U1JWQgEAAADJwcYBWW8/2NQcdT7/cT0fZkqgfWqj+x/5m69WP+Wrtt/E0bzJYtkvJu5I/YlabTeEaM4GiImAHMc+lrVdrnmj",
      "8KbXyPTJZcjmLmoUGh6eLxWJk0WAY7kOn/o0P69P7TuAABZcmLyFFpLTwxJ2pq9wdIka2ZYOPJl5D7am3lyJmvtLKHZOigOV",
      "PTazkCCnh4Wvkfeo93Ez8BnGn7F4zL7mJStmeQl97fJRUZ5ywT6r2iXOGvAEstQTp6WYDFC9KHrdyqq8g3er2XZNsrN/LWRp",
      "W9Yxt8qsGm2ivNZEvJdAMNPmMf6u7gFcdOoVWVa96zlwSHRqBbeNevMw7c44LQQApcTO2W8RoycHRstfMB7yZA==",
    ].join(""),
    "base64",
  ),
  "gen-1/secrets/app/db/password.sealed": Buffer.from(
    [
      "U1JWQgEAAACFCzb5435PN6PT9NgniuB7BqsDarBDImzO0FlhmoCN/zXkb1zQOtlJv8cpH+b9XA/loGQUDgnqMx6LkwFQA4XH",
      "ObFV0U/qOEIJPMHZyzsJUyC6nedJcV6qg9jro77ajayt+tAqh3SKXqrSDnfKMnah7XO+LPPUM7z8ArTzjCVcfSAL1F0eDKft",
      "1XtLFdVMI3NyYacY3ksqHzdMeoVDU3CX9wTCNkf8qRZeKR1VjPOQP2oDplF6UQ==",
    ].join(""),
    "base64",
  ),
};

const writtenAt = "2026-03-01T12:00:00.000Z";
const secrets = [
  { path: "app/db/password", value: "s3cr3t", metadata: {} },
  {
    path: "grüße/Con",
    value: "pässwörd \u0000\u2028 🗝️",
    metadata: { type: "password", description: "für den Schlüsselbund – 密码" },
  },
].map((secret) => ({ ...secret, createdAt: writtenAt, updatedAt: writtenAt }));

describe("a vault of format version 1, written on 2026-11-21", () => {
  it("opens under its passphrase and returns every secret", async () => {
    const home = join(temporaryDirectory(), "home");
    for (const [name, bytes] of Object.entries(files)) {
      const file = join(home, "vault", name);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, bytes, { mode: 0o600 });
    }
    const server = await startTestServer({ home });
    await mustUnlock(server, passphrase);
    for (const secret of secrets) expect(await mustGet(server, secret.path)).to.deep.equal(secret);
    expect(await mustList(server)).to.deep.equal(secrets.map(({ value: _, ...entry }) => entry));
  });
});
