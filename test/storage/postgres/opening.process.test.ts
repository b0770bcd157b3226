/** Opening of a database: password, TLS, rights, and what a failed start says. */
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { generate } from "selfsigned";
import { databaseEngine } from "../../../src/engines/postgres.js";
import { findPassword } from "../../../src/storage/postgres/pass-file.js";
import type { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { freePort, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { startProcess } from "../../../tools/rig/process.js";
import { bytes } from "../../support/bytes.js";
import { run } from "../../support/command-here.js";

const password = "a:b\\c ü";

function fileWith(text: string, mode = 0o600): string {
  const file = join(temporaryDirectory(), "file");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

/** Returns the message with which an opening is refused; "opened" when it is not. */
async function tryOpening(url: string, passwordFile: string | null = null): Promise<string> {
  try {
    await (await databaseEngine.open(url, passwordFile, { creates: true })).close();
    return "opened";
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  }
}

describe("the password of the database", () => {
  const target = { host: "db.example.org", port: 5432, database: "vault", user: "me", ssl: false } as const;
  const unixSocket = { ...target, host: "/run/postgresql" };
  const rows: readonly (readonly [
    rule: string,
    of: typeof unixSocket | typeof target,
    lines: string,
    want?: string,
  ])[] = [
    [
      "the line for host, port, database and user gives the password",
      target,
      "db.example.org:5432:vault:me:right",
      "right",
    ],
    ["the first line that fits gives the password", target, "x:*:*:*:wrong\n*:*:*:me:right\n*:*:*:*:late", "right"],
    ["a password may contain escaped colons and backslashes", target, "*:*:*:*:a\\:b\\\\c ü", password],
    ["the password of a Unix socket is that of localhost, as with libpq", unixSocket, "localhost:*:*:*:right", "right"],
    ["no password is found when no line fits, nor in a comment", target, "#*:*:*:*:x\ndb.example.org:1:*:*:x\n*:*:*\n"],
  ];
  for (const [rule, of, lines, want] of rows) {
    it(rule, async () => expect(await findPassword(of, null, { PGPASSFILE: fileWith(lines) })).to.equal(want));
  }

  it("the password file of the setting is the password, without its line feed", async () => {
    expect(await findPassword(target, fileWith(`${password}\n`), { PGPASSFILE: "unused" })).to.equal(password);
  });

  it("a password file that is missing or readable by other users is refused", async () => {
    const refusal = (file: string) => findPassword(target, file, {}).catch((error: Error) => error.message);
    expect(await refusal(fileWith("x", 0o640))).to.match(/^other users can access .*: run {2}chmod 600 /);
    expect(await refusal(join(temporaryDirectory(), "none"))).to.match(/is missing: create it/);
  });

  it("a password in the URL is refused on every way to give one, and not repeated", async () => {
    for (const url of ["postgres://me:s3cr3t@db/vault", "postgres://me@db/vault?password=s3cr3t"]) {
      const commands = [
        ["serve", "--store", url],
        ["migrate", "--from", url, "--to", "x"],
        ["doctor", "--store", url],
      ];
      for (const args of commands) {
        const { code, stderr } = await run(args);
        expect([args[0], code]).to.deep.equal([args[0], 2]);
        expect(stderr).to.contain("a URL without a password").and.not.to.contain("s3cr3t");
      }
    }
  });
});

describe("the PostgreSQL client", () => {
  /** The environment of a process that cannot load any of these. */
  const without = (...names: readonly string[]) => {
    const file = fileWith(`const Module = require("node:module"); const { _load } = Module;
      Module._load = (name, ...more) => {
        if (${JSON.stringify(names)}.includes(name)) throw new Error("loaded " + name);
        return _load(name, ...more);
      };`);
    return { NODE_OPTIONS: `--require ${file}` };
  };
  const engine = "./postgres-store.cjs";
  const onDatabase = ["serve", "--store", "postgres://me@127.0.0.1/vault"];

  it("a vault of files loads neither the PostgreSQL client nor the engine", async () => {
    const server = await startProcess([], without(engine));
    expect((await run(["status"], { STRONGROOM_HOME: server.home })).code).to.equal(8);
    expect((await run(onDatabase, without(engine))).stderr).to.contain("Module._load");
  });
});

describe("connections to the database", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(async () => {
    const postgres = await startPostgres();
    const name = await postgres.database();
    await postgres.sql(name, `CREATE ROLE keeper LOGIN PASSWORD '${password}'; ALTER DATABASE ${name} OWNER TO keeper`);
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], {
      keyType: "ec",
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    const [certificate, keyFile] = [fileWith(cert), fileWith(key)];
    const hba = fileWith("host all strongroom 127.0.0.1/32 trust\nhostssl all keeper 127.0.0.1/32 scram-sha-256\n");
    for (const file of [certificate, keyFile, hba]) for (const path of [file, join(file, "..")]) postgres.give(path);
    await postgres.kill();
    const tls = ["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${keyFile}`, `hba_file=${hba}`];
    await postgres.start(tls);
    return { ...postgres, name, root: fileWith(cert), file: fileWith(password), tls };
  });
  const urlAt = (host: string, query: string) =>
    `postgres://keeper@${host}:${database().port}/${database().name}?${query}`;

  const modes: readonly (readonly [host: string, mode: string, withRoot: boolean, want: RegExp])[] = [
    ["localhost", "verify-full", true, /^opened$/],
    ["127.0.0.1", "verify-full", true, /ERR_TLS_CERT_ALTNAME_INVALID/],
    ["localhost", "verify-full", false, /SELF_SIGNED/],
    ["127.0.0.1", "verify-ca", true, /^opened$/],
    ["127.0.0.1", "verify-ca", false, /SELF_SIGNED/],
    ["127.0.0.1", "require", false, /^opened$/],
    ["127.0.0.1", "disable", false, /\(28000\): it refuses this user/],
    ["127.0.0.1", "prefer", false, /sslmode is unknown: use one of disable, require, verify-ca, verify-full/],
  ];
  for (const [host, mode, withRoot, want] of modes) {
    const root = withRoot ? "the right authority" : "no authority";
    it(`a connection to ${host} with sslmode=${mode} and ${root} gets ${want.source}`, async () => {
      const { root: file, file: passwordFile } = database();
      const query = `sslmode=${mode}${withRoot ? `&sslrootcert=${file}` : ""}`;
      expect(await tryOpening(urlAt(host, query), passwordFile)).to.match(want);
    });
  }

  it("a foreign certificate is refused, also with NODE_TLS_REJECT_UNAUTHORIZED=0", async () => {
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      for (const query of ["sslmode=verify-full", "sslmode=verify-ca"])
        expect(await tryOpening(urlAt("localhost", query), database().file)).to.match(/SELF_SIGNED/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });

  it("an unusable database is reported with what to do, without its URL", async () => {
    const { port, file } = database();
    const unused = await freePort();
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    later(() => {
      silent.close();
    });
    const { port: silentPort } = silent.address() as AddressInfo;
    const unanswered = tryOpening(`postgres://strongroom@127.0.0.1:${silentPort}/nothing`, file);
    const outcomes = [
      [await tryOpening(urlAt("127.0.0.1", "sslmode=require"), fileWith("wrong")), /the password is wrong or has/],
      [await tryOpening(urlAt("127.0.0.1", "sslmode=require")), /asks for a password: name .* --store-password-file/],
      [await tryOpening(`postgres://strongroom@127.0.0.1:${port}/nothing`, file), /no such database: create it/],
      [await tryOpening(`postgres://strongroom@127.0.0.1:${unused}/nothing`, file), /cannot be used \(ECONNREFUSED\)/],
      [await tryOpening("postgres://strongroom@127.0.0.1", file), /it names no database/],
      [await tryOpening("postgres://strongroom@127.0.0.1/x?option=1", file), /an unknown parameter: use host, port/],
      [await tryOpening("postgres://keeper:12?keeper@127.0.0.1/x", file), /an unknown parameter/],
      [await tryOpening("postgres://keeper:12?options=a@127.0.0.1/x", file), /an unknown parameter/],
      [await tryOpening("postgres://a@127.0.0.1/x?password=12", file), /it contains a password/],
      [
        await tryOpening("postgres://a@127.0.0.1/x?sslmode=require&channel_binding=require", file),
        /channel_binding is not supported: sslmode=verify-full.* replaces it; use host/,
      ],
      [await tryOpening("postgres://a@127.0.0.1/x?application_name=x", file), /parameter application_name is not/],
      [await tryOpening("postgres://a@127.0.0.1/x?target_session_attrs=standby", file), /target_session_attrs is not/],
      [
        await tryOpening(
          `postgres://a@127.0.0.1:${unused}/x?target_session_attrs=read-write&sslnegotiation=postgres`,
          file,
        ),
        /ECONNREFUSED/,
      ],
      [await tryOpening("postgres://strongroom@127.0.0.1/%zz", file), /an invalid % escape/],
      [await tryOpening("postgres://strongroom@127.0.0.1/x?port=abc", file), /its port is invalid/],
      [await unanswered, /cannot be used \(no answer in time\): check that it runs/],
    ] as const;
    for (const [outcome, want] of outcomes) {
      expect(outcome).to.match(want);
      for (const part of ["postgres://", "keeper", "127.0.0.1"]) expect(outcome).not.to.contain(part);
    }
  });

  it("a user with no more than the rights of docs/postgres.md serves a vault", async () => {
    const { sql, port, database: create } = database();
    const [roles = "", schema = ""] = [
      ...readFileSync("docs/postgres.md", "utf8").matchAll(/^```sql\n(.*?)^```/gms),
    ].map(([, text = ""]) => text);
    for (const statement of roles.split(";\n")) if (statement.trim() !== "") await sql("postgres", statement);
    await sql("strongroom", schema);
    await create();
    const userUrl = (user: string) => `postgres://${user}@127.0.0.1:${port}/strongroom`;
    await trustEveryone();
    expect(await tryOpening(userUrl("strongroom_server"))).to.match(/\(42501\): .* strongroom doctor --fix/);
    expect(await tryOpening(userUrl("strongroom_owner"))).to.equal("opened");
    const store = await databaseEngine.open(userUrl("strongroom_server"), null, { creates: true });
    try {
      await store.startNewVault(bytes("header"));
      expect(await store.replaceHeader(bytes("later"), bytes("header"))).to.equal(true);
      const blob = bytes("a sealed secret, long enough for a tag");
      for (const path of ["a", "b"]) expect(await store.commit([{ path, blob }])).to.deep.equal({ committed: true });
      await store.commit([
        { path: "a", blob: null },
        { path: "c", blob },
      ]);
      const expected = { tag: "not compared", whole: blob };
      expect(await store.commit([{ path: "c", blob: bytes("another"), expected }])).to.deep.equal({ committed: true });
      expect(await store.commit([{ path: "c", blob, expected }])).to.deep.equal({ committed: false, refused: 0 });
      expect(await (store as PostgresStore).currentRun()).to.match(/^\d+\.\d+ \d+ \d+$/);
      await store.writeDocument("tokens", bytes("{}"), null);
      expect([await store.count(), await store.list("", "", 9)]).to.deep.equal([2, ["b", "c"]]);
      expect(await store.startNewVault(bytes("next"))).to.contain("vault 1 in postgres://");
    } finally {
      await store.close();
    }
    const forbidden = ["DROP TABLE strongroom.secret", "CREATE TABLE strongroom.x ()", "CREATE TABLE public.x ()"];
    for (const statement of forbidden) {
      const refused = await sql("strongroom", `SET ROLE strongroom_server; ${statement}`).catch(
        (error: Error) => error,
      );
      expect(String(refused), statement).to.match(/must be owner|permission denied/);
    }
  });

  async function trustEveryone(): Promise<void> {
    const { kill, start, give } = database();
    const hba = fileWith("host all all 127.0.0.1/32 trust\n");
    for (const path of [hba, join(hba, "..")]) give(path);
    await kill();
    await start([`hba_file=${hba}`]);
  }
});
