/** `strongroom import` of what other programs write in unusual ways: each row is a small file, and what becomes of it. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList } from "../../tools/rig/test-client.js";
import { strongroom } from "./run-command.js";
import { makeZip } from "./zip-archive.js";

type Case = {
  readonly input: string | Buffer;
  readonly flags?: readonly string[];
  /** All that is stored, by path. */
  readonly stored: Readonly<Record<string, string>>;
  /** Words of the messages. */
  readonly says?: readonly string[];
  /** 2 by default where nothing is stored, else 0. */
  readonly code?: number;
};

const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const other = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

type Strings = Readonly<Record<string, string>>;

function entry(strings: Strings, uuid = ""): string {
  const rows = Object.entries(strings).map(
    ([key, value]) => `<String><Key>${escaped(key)}</Key><Value>${escaped(value)}</Value></String>`,
  );
  return `<Entry><UUID>${uuid}</UUID>${rows.join("")}</Entry>`;
}

function keepass(...content: readonly string[]): string {
  const meta = "<Meta><RecycleBinEnabled>True</RecycleBinEnabled><RecycleBinUUID>YmluYmlu</RecycleBinUUID></Meta>";
  return `<KeePassFile>${meta}<Root><Group><Name>R</Name>${content.join("")}</Group></Root></KeePassFile>`;
}

const withStrings = (strings: Strings) => keepass(entry({ Title: "A", ...strings }));
const url = (query: string) => `otpauth://totp/?secret=${query}`;

const seeds: Readonly<Record<string, Case>> = {
  "TimeOtp in UTF-8": {
    input: withStrings({ "TimeOtp-Secret": "12345678901234567890" }),
    stored: { "A/totp": url(seed) },
  },
  "TimeOtp in hex, with settings": {
    input: withStrings({
      "TimeOtp-Secret-Hex": "31323334 35363738 39303132 33343536 37383930",
      "TimeOtp-Algorithm": "HMAC-SHA-512",
      "TimeOtp-Period": "45",
    }),
    stored: { "A/totp": url(`${seed}&algorithm=SHA512&period=45`) },
  },
  "TimeOtp in Base64": {
    input: withStrings({ "TimeOtp-Secret-Base64": "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "TimeOtp-Length": "7" }),
    stored: { "A/totp": url(`${seed}&digits=7`) },
  },
  "TOTP Seed for Steam": {
    input: withStrings({ "TOTP Seed": seed, "TOTP Settings": "30;S" }),
    stored: { "A/totp": url(`${seed}&period=30&encoder=steam`) },
  },
  "TOTP Seed with a clock's address": {
    input: withStrings({ "TOTP Seed": "gezd gnbv gy3t qojq", "TOTP Settings": "45;7;https://time.example" }),
    stored: { "A/totp": url("gezdgnbvgy3tqojq&digits=7&period=45") },
  },
  "a short secret in otp": { input: withStrings({ otp: "JBSWY3DP" }), stored: { "A/totp": url("JBSWY3DP") } },
  "one seed in two spellings": {
    input: withStrings({ otp: `key=${seed}&size=8`, "TimeOtp-Secret-Base32": seed, "TimeOtp-Length": "8" }),
    stored: { "A/totp": `key=${seed}&size=8` },
  },
  "two seeds": {
    input: withStrings({ otp: url(seed), "TOTP Seed": other }),
    stored: { "A/totp/otp": url(seed), "A/totp/TOTP Seed": url(other) },
  },
  "a setting without a seed": {
    input: withStrings({ Password: "p", "TimeOtp-Period": "60" }),
    stored: { "A/password": "p", "A/fields/TimeOtp-Period": "60" },
  },
};

const uncomputable: Readonly<Record<string, Strings>> = {
  "HmacOtp-Secret-Base32, HmacOtp-Counter: it is counter-based": {
    "HmacOtp-Secret-Base32": seed,
    "HmacOtp-Counter": "3",
  },
  "totp (otp): no one-time code can be computed: it is counter-based": { otp: `otpauth://hotp/x?secret=${seed}` },
  "its algorithm must be": { "TimeOtp-Secret-Base32": seed, "TimeOtp-Algorithm": "HMAC-MD5" },
  "its digits must be 6 to 8": { "TOTP Seed": seed, "TOTP Settings": "30;10" },
  "its secret is not in hex": { "TimeOtp-Secret-Hex": "31323" },
  "its secret is missing, or not in base32": { otp: "not a seed!" },
};
for (const [words, strings] of Object.entries(uncomputable)) {
  const stored = { "A/password": "p" };
  Object.assign(seeds, {
    [words]: { input: withStrings({ Password: "p", ...strings }), stored, says: [words], code: 2 },
  });
}

const [main, mainId] = [Buffer.alloc(16, 0xab).toString("base64"), "ab".repeat(16)];
const referred = (value: string, ...more: readonly string[]) => {
  const first = entry({ Title: "Main", UserName: "ann", Password: "p-1", PIN: "77" }, main);
  return keepass(first, entry({ Title: "B", Password: value, UserName: "bob", PIN: "88" }), ...more);
};
const mainStored = { "Main/username": "ann", "Main/password": "p-1", "Main/fields/PIN": "77" };
const others = { ...mainStored, "B/username": "bob", "B/fields/PIN": "88" };
const filled = (value: string, is: string): Case => ({
  input: referred(value),
  stored: { ...others, "B/password": is },
  says: ["entry B, password: its references are filled in"],
});
const unfilled = (value: string, ...says: readonly string[]): Case => ({
  ...{ input: referred(value), stored: others, says: ["entry B, password: ", ...says], code: 2 },
});

const references: Readonly<Record<string, Case>> = {
  "a reference by identifier, in any case": filled(`{ref:p@i:${mainId.toUpperCase()}}`, "p-1"),
  "a reference by title, within text": filled("x-{REF:U@T:Main}-{REF:P@T:Main}", "x-ann-p-1"),
  "fields of the entry": filled("{USERNAME}/{S:PIN}", "bob/88"),
  "a brace that is no placeholder": { input: referred("{a}{URL}{"), stored: { ...others, "B/password": "{a}{URL}{" } },
  "a reference to no entry": unfilled("{REF:P@I:00000000000000000000000000000000}", "no single entry"),
  "a reference to two entries": unfilled("{REF:P@T:a}", "no single entry"),
  "a reference to itself": unfilled("{REF:P@T:B}", "refers to itself"),
  "many references to itself": unfilled("{REF:P@T:B}".repeat(9), "refers to itself"),
  "a placeholder of KeePass": unfilled("{TOTP}", "only KeePass can fill in"),
  "a reference into the recycle bin": {
    input: referred(
      "{REF:P@T:Gone}",
      `<Group><UUID>YmluYmlu</UUID><Name>Old</Name>${entry({ Title: "Gone", Password: "p-9" })}</Group>`,
    ),
    stored: { ...others, "B/password": "p-9" },
    says: ["the recycle bin (1 entry)"],
  },
  "a reference in CSV": {
    input: '"Group","Title","Username","Password"\n"R","A","u","{REF:P@I:00}"\n',
    stored: { "A/username": "u" },
    says: ["row 1 (A), password: its {REF:…} refers to another entry"],
    code: 2,
  },
};

const logins = (...names: readonly string[]) => {
  const items = names.map((name, i) => ({ type: 1, name, login: { password: `p${i}` }, folderId: null }));
  return JSON.stringify({ folders: [], items });
};
const named = (...pairs: readonly (readonly [name: string, path: string])[]): Case => ({
  input: logins(...pairs.map(([name]) => name)),
  stored: Object.fromEntries(pairs.map(([, path], i) => [`${path}/password`, `p${i}`])),
});

const titles: Readonly<Record<string, Case>> = {
  addresses: named(["https://x.example/login?a=b", "x.example-login?a=b"], ["android://key@app/", "key@app"]),
  "slashes at ends and in a row": named(["/a/", "a"], ["b//c", "b/c"], ["///", "untitled"]),
  "a Windows account": named(["CORP\\svc", "CORP-svc"], ["\\\\host\\share", "--host-share"]),
  "dots, control characters and surrogates": named(["../x", "dotdot/x"], ["a\tb\nc", "a b c"], ["\ud800z", "\ufffdz"]),
  "no title": named(["", "untitled"], [" ", "untitled-2"]),
  "a title that is cut": named(["é".repeat(200), `${"é".repeat(38)}…`]),
  "equal titles, also after the change": {
    ...named(["CORP\\svc", "CORP-svc-2"], ["CORP-svc", "CORP-svc"], ["Mail", "Mail"], ["Mail", "Mail-2"]),
    says: ["item 1 (CORP\\svc): stored as ", "item 4 (Mail): stored as "],
  },
  "no title, but a host or user": {
    input:
      "url,username,password,totp,extra,name,grouping,fav\nhttps://h.example/x,u,p,,,,,0\n,ann@x,q,,,,G,0\nx.example/a b,,r,,,,,0\n",
    stored: {
      ...{ "h.example/url": "https://h.example/x", "h.example/username": "u", "h.example/password": "p" },
      ...{ "G/ann@x/username": "ann@x", "G/ann@x/password": "q" },
      ...{ "x.example/a/url": "x.example/a b", "x.example/a/password": "r" },
    },
  },
};

const onePassword = (...items: readonly object[]) => {
  return makeZip({ "export.data": JSON.stringify({ accounts: [{ vaults: [{ attrs: { name: "V" }, items }] }] }) });
};
const section = (title: string, ...fields: readonly (readonly [title: string, value: object])[]) => {
  return { title, fields: fields.map(([name, value]) => ({ title: name, value })) };
};

const equalFields: Readonly<Record<string, Case>> = {
  "seeds of several labels": {
    input: onePassword({
      overview: { title: "X" },
      details: { sections: [section("2FA", ["login", { totp: seed }], ["trade", { totp: other }])] },
    }),
    stored: { "X/totp/2FA/login": seed, "X/totp/2FA/trade": other },
  },
  "passwords of several labels": {
    input: onePassword({
      overview: { title: "X" },
      details: {
        password: "p3",
        loginFields: [
          { designation: "password", name: "pass", value: "p1" },
          { designation: "password", name: "old", value: "p2" },
        ],
      },
    }),
    stored: { "X/password": "p1", "X/password/old": "p2", "X/password-2": "p3" },
  },
  "custom fields of one name": {
    input: JSON.stringify({
      items: [{ type: 2, name: "X", secureNote: {}, fields: ["1", "2", "3"].map((value) => ({ name: "pin", value })) }],
    }),
    stored: { "X/fields/pin": "1", "X/fields/pin-2": "2", "X/fields/pin-3": "3" },
  },
  "custom fields without a name, and one that has the next number": {
    input: JSON.stringify({
      items: [
        {
          ...{ type: 2, name: "X", secureNote: {} },
          fields: [
            { value: "1" },
            { name: "", value: "2" },
            { name: "unnamed-2", value: "3" },
            { name: "n", value: 4 },
          ],
        },
      ],
    }),
    stored: { "X/fields/unnamed": "1", "X/fields/unnamed-3": "2", "X/fields/unnamed-2": "3", "X/fields/n": "4" },
  },
  "strings of one key": {
    input: keepass(entry({ Title: "A", PIN: "1" }).replace("</Entry>", `${entry({ PIN: "2" }).slice(20)}`)),
    stored: { "A/fields/PIN": "1", "A/fields/PIN-2": "2" },
  },
};

const dotenv: Readonly<Record<string, Case>> = {
  "variables that are set before": {
    input: `USER=ann\nHOST=h\nDB_URL="postgres://\${USER}@$HOST/x"\nAGAIN=\${DB_URL}?a\n`,
    stored: { USER: "ann", HOST: "h", DB_URL: "postgres://ann@h/x", AGAIN: "postgres://ann@h/x?a" },
    says: [`line 3 (DB_URL): \${USER} is filled in`, "line 3 (DB_URL): $HOST is filled in"],
  },
  "variables that are not set": {
    input: `A=\${HOME}\nB=\${X:-y}\nC=pa$$word\nD=e\n`,
    stored: { C: "pa$$word", D: "e" },
    says: [`line 1 (A): its \${HOME} is not set before`, `line 2 (B): its \${…}`, "line 3 (C): its $ is kept"],
    code: 2,
  },
  "dollars within single quotes": { input: `A='\${X}$Y'\n`, stored: { A: `\${X}$Y` } },
  "escapes within quotes": {
    input: 'J="{\\"a\\": \\"b\\"}"\nK=\'it\\\'s\'\nL="c:\\\\dir \\$5"\n',
    stored: { J: '{"a": "b"}', K: "it's", L: "c:\\\\dir $5" },
    says: ['line 1 (J): the backslash before " is left out', "line 3 (L): its backslash is kept"],
  },
  references: {
    input: "A=op://vault/item/field\nB=strongroom://app/x\nC=ref+vault://x\nD=1\n",
    stored: { D: "1" },
    says: ["line 1 (A): it is a reference of another program", "line 2 (B): it is a reference to the vault", "line 3"],
    code: 2,
  },
};

const csv: Readonly<Record<string, Case>> = {
  Dashlane: {
    input: `username,username2,username3,title,password,note,url,category,otpUrl\nu,v,,T,p,n,https://d,C,${url(seed)}\n`,
    stored: {
      ...{ "C/T/username": "u", "C/T/username-2": "v", "C/T/password": "p", "C/T/notes": "n", "C/T/url": "https://d" },
      "C/T/totp": url(seed),
    },
  },
  "Proton Pass": {
    input: `type,name,url,email,username,password,note,totp,createTime,modifyTime,vault\nlogin,S,"https://a, https://b",a@b,,p,,${url(seed)},1,2,V\n`,
    stored: {
      ...{ "V/S/url": "https://a, https://b", "V/S/email": "a@b", "V/S/password": "p", "V/S/totp": url(seed) },
    },
    says: ["left out: the column type", "left out: the column modifyTime"],
  },
  NordPass: {
    input:
      "name,url,username,password,note,cardholdername,cardnumber,cvc,expirydate,folder\nF,,,,,,,,,\nVisa,,,,,Ann,4111,123,12/30,F\n",
    stored: {
      ...{ "F/Visa/card/holder": "Ann", "F/Visa/card/number": "4111", "F/Visa/card/code": "123" },
      "F/Visa/card/expiry": "12/30",
    },
    says: ["row 1 (F): it has only a title"],
  },
  "Bitwarden's, with fields": {
    input:
      'folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\nA/B,,login,N,,"pin: 1\nx: 2",0,,u,p,\n',
    stored: { "A/B/N/username": "u", "A/B/N/password": "p", "A/B/N/fields": "pin: 1\nx: 2" },
  },
  "a header with a comma at its end": {
    input: "name,url,username,password,\na,,u,p,\n",
    stored: { "a/username": "u", "a/password": "p" },
  },
  "a column without a name that has values": {
    input: "name,url,username,password,\na,,u,p,x\n",
    stored: {},
    says: ["columns that a browser does not write: one without a name"],
  },
  "a column that is dropped, though it is known": {
    input: "name,url,username,password,note\na,https://a,u,p,n\n",
    flags: ["--drop", "note"],
    stored: { "a/url": "https://a", "a/username": "u", "a/password": "p" },
    says: ["left out: the column note"],
  },
  "a seed by a counter": {
    input: `Title,URL,Username,Password,Notes,OTPAuth\nT,,u,p,,otpauth://hotp/x?secret=${seed}\n`,
    stored: { "T/username": "u", "T/password": "p" },
    says: ["row 1 (T), totp: no one-time code can be computed: it is counter-based"],
    code: 2,
  },
};

const bitwardenItem = { type: 1, name: "Old", login: { username: "u", password: "p" } };
const json: Readonly<Record<string, Case>> = {
  "Bitwarden's without its mark or folders": {
    input: JSON.stringify({ items: [bitwardenItem] }),
    stored: { "Old/username": "u", "Old/password": "p" },
  },
  "names that make no path": {
    input: JSON.stringify({ "https://x.example/": "1", "CORP\\svc": { "/a/": "2", "": "3" }, "b/c": "4" }),
    stored: { "x.example": "1", "CORP-svc/a": "2", "CORP-svc/untitled": "3", "b/c": "4" },
    says: ["https://x.example/: stored as x.example", "CORP\\svc → /a/: stored as CORP-svc/a"],
  },
  "Bitwarden's without types": {
    input: JSON.stringify({
      folders: [],
      items: [
        { name: "A", notes: "n" },
        { name: "B", login: { password: "p" } },
      ],
    }),
    stored: { "A/notes": "n", "B/password": "p" },
  },
  "1Password's older export": {
    input: `{"uuid":"x"}\n***5642bee8-a5ff-11dc-8314-0800200c9a66***\n`,
    stored: {},
    says: ["is an export of 1Password 7, which import does not read"],
  },
  "KeePass's XML with two roots": {
    input: keepass(entry({ Title: "A", Password: "p" })).replace("</Root>", "<Group><Name>S</Name></Group></Root>"),
    stored: {},
    says: ["has several root groups"],
  },
  "Bitwarden's of an organization": {
    input: JSON.stringify({
      collections: [{ id: "c", name: "Ops/Web" }],
      items: [{ ...bitwardenItem, collectionIds: ["c"], passport: { number: "1" } }],
    }),
    stored: { "Ops/Web/Old/username": "u", "Ops/Web/Old/password": "p" },
    says: ["item 1 (Old): its passport"],
  },
  "Bitwarden's archive": {
    input: makeZip({
      "data.json": JSON.stringify({ encrypted: false, items: [bitwardenItem] }),
      "attachments/1/a.pdf": "x",
    }),
    stored: { "Old/username": "u", "Old/password": "p" },
    says: ["left out: the attachment attachments/1/a.pdf"],
  },
  "an unknown archive": { input: makeZip({ "x.json": "{}" }), stored: {}, says: ["none that import knows"] },
};
const foreign: Readonly<Record<string, object>> = {
  Aegis: { version: 1, header: {}, db: { entries: [] } },
  andOTP: [{ secret: seed, label: "a", type: "TOTP", algorithm: "SHA1" }],
  FreeOTP: { tokenOrder: [], tokens: [] },
  "2FAS": { services: [], schemaVersion: 4 },
  Enpass: { folders: [], items: [{ title: "a", uuid: "u", fields: [], category: "login" }] },
  "Proton Pass": { version: "1.2", userId: "u", encrypted: false, vaults: {} },
  Dashlane: { AUTHENTIFIANT: [] },
};
for (const [program, content] of Object.entries(foreign)) {
  const says = [`is an export of ${program}, which import does not read`];
  Object.assign(json, { [`${program}'s`]: { input: JSON.stringify(content), stored: {}, says } });
}

describe("strongroom import, case by case", () => {
  const server = shareLocalServer({}, mustInit);
  let folders = 0;

  async function stored(folder: string): Promise<Record<string, string>> {
    const entries = await mustList(server(), `?prefix=${folder}`);
    const rows = entries.map(async ({ path }) => {
      const { value, encoding } = await mustGet(server(), path);
      return [path.slice(folder.length), `${encoding === undefined ? "" : `${String(encoding)}: `}${String(value)}`];
    });
    return Object.fromEntries(await Promise.all(rows));
  }

  async function check(args: readonly string[], input: string | Buffer, wanted: Omit<Case, "input">): Promise<void> {
    const folder = `case-${folders++}/`;
    const finished = await strongroom(server(), ["import", "--prefix", folder, ...args], { input });
    const said = finished.stdout + finished.stderr;
    expect(await stored(folder), said).to.deep.equal(wanted.stored);
    for (const words of wanted.says ?? []) expect(said).to.contain(words);
    expect(finished.code, said).to.equal(wanted.code ?? (Object.keys(wanted.stored).length === 0 ? 2 : 0));
  }

  const tables = { seeds, references, titles, "equal fields": equalFields, dotenv, CSV: csv, JSON: json };
  for (const [kind, rows] of Object.entries(tables)) {
    describe(kind, () => {
      for (const [what, wanted] of Object.entries(rows)) {
        it(`imports ${what}`, () => check([...(wanted.flags ?? []), "-"], wanted.input, wanted));
      }
    });
  }

  describe("password stores", () => {
    const header = 'Content-Disposition: attachment; filename="k.p12"\nContent-Transfer-Encoding: Base64\n';
    const armour = "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n";
    const stores: Readonly<Record<string, Omit<Case, "input"> & { readonly files: Readonly<Record<string, string>> }>> =
      {
        "gopass' binary entries": {
          files: {
            a: `\n${header}AAECA/8=\n`,
            b: `${header}\nAAEC\nA/8=\n`,
            c: `GOPASS-SECRET-1.0\n${header}\nAAECA/8=\n`,
          },
          stored: { a: "base64: AAECA/8=", b: "base64: AAECA/8=", c: "base64: AAECA/8=" },
        },
        "a text that only looks like one": {
          files: { a: "pw\nContent-Transfer-Encoding: Base64\nx\n" },
          stored: { a: "pw", "a/notes": "Content-Transfer-Encoding: Base64\nx" },
        },
        "what age and PGP have encrypted": {
          files: { a: armour, b: "age-encryption.org/v1\n-> X", c: "-----BEGIN PGP MESSAGE-----\n", d: "p" },
          stored: { d: "p" },
          says: ["a: it is encrypted with age", "b: it is encrypted with age", "c: it is encrypted with PGP"],
          code: 2,
        },
        "seeds, two of them, and names with backslashes": {
          files: { "CORP\\svc": `p\n${url(seed)}\n${url(other)}\n`, only: `otpauth://hotp/x?secret=${seed}\n` },
          stored: { "CORP-svc": "p", "CORP-svc/totp": url(seed), "CORP-svc/totp-2": url(other) },
          says: ["CORP\\svc: stored as CORP-svc", "only: no one-time code can be computed"],
          code: 2,
        },
      };
    for (const [what, { files, ...wanted }] of Object.entries(stores)) {
      it(`imports ${what}`, async () => {
        const root = temporaryDirectory();
        for (const [name, content] of Object.entries({ ".gpg-id": "k", ...files })) {
          mkdirSync(dirname(join(root, name)), { recursive: true });
          writeFileSync(join(root, name), content);
        }
        await check([root], "", wanted);
      });
    }

    it("imports files of any names, or names them", async () => {
      const root = temporaryDirectory();
      const names = fc.sample(fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }), 60);
      const files = names
        .map((name) => name.replace(/[/\0]|^\.+/g, "_").normalize("NFC"))
        .filter((name) => name !== "");
      for (const [i, name] of [...new Set(files), "a\\b", " x ", "a\tb", "c\\.."].entries()) {
        writeFileSync(join(root, name), `value ${i}.\n`);
      }
      const written = readdirSync(root).map((name) => readFileSync(join(root, name), "utf8").trim());
      writeFileSync(join(root, ".gpg-id"), "k");
      const folder = `case-${folders++}/`;
      const { stdout, stderr } = await strongroom(server(), ["import", "--json", "--prefix", folder, root]);
      const kept = Object.values(await stored(folder));
      const { refused } = JSON.parse(stdout) as { refused: readonly unknown[] };
      const missing = written.filter((value) => !kept.includes(value));
      expect(missing.length, stderr).to.equal(refused.length);
      expect(kept.every((value) => written.includes(value))).to.equal(true);
    });

    it("imports links by each of their names", async () => {
      const root = temporaryDirectory();
      mkdirSync(join(root, "web/sub"), { recursive: true });
      writeFileSync(join(root, ".gpg-id"), "k");
      writeFileSync(join(root, "web/a"), "p");
      symlinkSync("../a", join(root, "web/sub/up"));
      symlinkSync("sub/up", join(root, "web/chain"));
      await check([root], "", { stored: { "web/a": "p", "web/sub/up": "p", "web/chain": "p" } });
    });
  });
});
