/** Formats of `strongroom import`: each row is a small file as some program writes it, and what becomes of it. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { readOnePassword } from "../../src/cli/import/one-password.js";
import { CommandFailure } from "../../src/cli/kit/errors.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList } from "../../tools/rig/test-client.js";
import { strongroom } from "./run-command.js";
import { makeZip } from "./zip-archive.js";

type Case = {
  readonly input: string | Buffer;
  readonly flags?: readonly string[];
  /** All that is stored, by path: `type: value` where the type is not that of its last name. */
  readonly stored: Readonly<Record<string, string>>;
  /** Words of the messages, which name paths without the row's folder. */
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
    says: ["the format is lastpass\n"],
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
  "comments, quotes and an empty value": {
    input: "# c\n\nexport DB_URL='postgres://x' # c\nKEY=\"a\\nb\"\nEMPTY=\n",
    stored: { DB_URL: "postgres://x", KEY: "a\nb", EMPTY: "" },
    says: ["the format is dotenv\n", "3 created, 0 replaced, 0 unchanged, 0 skipped\n"],
  },
  "a quoted value of 10 MB": {
    input: `A='${"x".repeat(10e6)}'\nB=b\n`,
    stored: { B: "b" },
    says: ["line 1", "the limit is 1,048,576", "1 created", "1 not imported"],
    code: 2,
  },
  "an escaped quote that ends a line, where no other does": {
    input: `A='a\\'\nB="b\\" # c\nc\\" \nC='it\\'s' # it's\n`,
    stored: { A: "a\\", B: 'b" # c\nc\\', C: "it's" },
    says: ['line 2 (B): the backslash before " is left out'],
  },
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

const lastpass = "url,username,password,totp,extra,name,grouping,fav\n";
const keepassxc = '"Group","Title","Password"\n';
const inMail = { "M/a/password": "p" };
const siteA = { "a/url": "https://a", "a/username": "me", "a/password": "p" };

const csv: Readonly<Record<string, Case>> = {
  "KeePassXC's, without the root group": {
    input: [
      '"Group","Title","Username","Password","URL","Notes","TOTP","Icon","Last Modified","Created","Tags"',
      '"Root/Internet","Bank","me","p""w,1","https://bank","line 1',
      'line 2","otpauth://totp/x?secret=ABCD","0","2026","2025","t"',
      '"Root","Top","","top","","","","0","","",""',
      '"Root","","","untitled","","","","0","","",""',
      '"Root","Nothing","","","","","","0","","",""',
    ].join("\n"),
    flags: ["--format", "keepassxc", "--drop", "Tags"],
    stored: {
      ...{ "Internet/Bank/username": "me", "Internet/Bank/password": 'p"w,1', "Internet/Bank/url": "https://bank" },
      ...{ "Internet/Bank/notes": "line 1\nline 2", "Internet/Bank/totp": "otpauth://totp/x?secret=ABCD" },
      ...{ "Top/password": "top", "untitled/password": "untitled" },
    },
    says: ["the column Tags", "row 3: stored as", "row 4 (Nothing): it has only a title"],
  },
  "KeePassXC's recycle bin": {
    input: `${keepassxc}"Root/Recycle Bin","Old","gone"\n"Root/Mail","New","kept"\n`,
    stored: { "Mail/New/password": "kept" },
    says: ["the format is keepassxc\n", "row 1 (Old): it is in the recycle bin"],
  },
  "a bin in Russian": { input: `${keepassxc}"R/Корзина","x","y"\n"R/M","a","p"\n`, stored: inMail },
  "a bin in Japanese": { input: `${keepassxc}"R/ゴミ箱","x","y"\n"R/M","a","p"\n`, stored: inMail },
  "no title": {
    input: '"Group","Title","URL","Password"\n"R/M","","https://h.example/","p"\n',
    stored: { "M/h.example/url": "https://h.example/", "M/h.example/password": "p" },
  },
  "a folder with a backslash": {
    input: `${lastpass}https://a.example,me,pw,,n,Site,Work\\Web,0\n`,
    stored: {
      ...{ "Work/Web/Site/url": "https://a.example", "Work/Web/Site/username": "me", "Work/Web/Site/password": "pw" },
      "Work/Web/Site/notes": "n",
    },
  },
  "a row of a group": {
    input: `${lastpass}http://group,,,,,,G,0\nhttps://a,,p,,,A,G,0\n`,
    stored: { "G/A/url": "https://a", "G/A/password": "p" },
  },
  "a group's address and a user's name": {
    input: `${lastpass}http://group,me,,,,A,G,0\n`,
    stored: { "G/A/url": "http://group", "G/A/username": "me" },
  },
  semicolons: {
    input: "name;url;username;password;note\na;https://a;me;p;n\n",
    stored: { ...siteA, "a/notes": "n" },
  },
  tabs: { input: "name\turl\tusername\tpassword\na\thttps://a\tme\tp,q\n", stored: { ...siteA, "a/password": "p,q" } },
  "short rows": {
    input: "name,url,username,password,note\na,https://a,me,p\n",
    stored: siteA,
    says: ["the format is browser\n"],
  },
  "an empty first line": { input: "\r\nurl,username,password\nhttps://a,me,p\n", stored: siteA },
  "Firefox's columns": {
    input: '"url","username","password","httpRealm","guid"\n"https://b.example","me","pw","","{1}"\n',
    stored: { "b.example/url": "https://b.example", "b.example/username": "me", "b.example/password": "pw" },
    says: ["the format is browser\n"],
  },
  "Safari's columns": {
    input: `Title,URL,Username,Password,Notes,OTPAuth\na,https://a,me,p,n,${seed}\n`,
    stored: { ...siteA, "a/notes": "n", "a/totp": seed },
  },
  "1Password's columns": {
    input: `Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes\na,https://a,me,p,${seed},false,false,t,\n`,
    stored: { ...siteA, "a/totp": seed, "a/tags": "t", "a/archived": "false" },
  },
  "a column that is there twice": {
    input: "url,username,password,note,note\nu,m,p,a,b\n",
    flags: ["--drop", "note"],
    stored: {},
    says: ["twice"],
  },
  "a last row that is cut off": {
    input: "name,url,username,password\na,https://a,m",
    stored: {},
    says: ["ends within its last row"],
  },
  "--drop of a column that is missing": {
    input: "url,username,password\nu,m,p\n",
    flags: ["--drop", "x"],
    stored: {},
    says: ["not in the file"],
  },
  "rows without a header": {
    input: '"Bank","aib","ann@mail.example","s3cr3t"\n'.repeat(2),
    stored: {},
    says: ["the format is none that import knows"],
  },
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

for (const [what, header] of [
  ["an unknown program with a browser's columns", "url,username,password,secretAnswer"],
  ["an unknown program", "title,username,password,secretAnswer"],
  ["NordPass with a new column", "name,url,username,password,note,cardholdername,cardnumber,cvc,folder,secretAnswer"],
] as const) {
  const input = `${header}\n${header.replace(/\w+/g, "s3cr3t")}\n`;
  Object.assign(csv, { [`columns of ${what}`]: { input, stored: {}, says: ["secretAnswer"] } });
}

const bitwarden = {
  encrypted: false,
  folders: [{ id: "f1", name: "Work/Mail" }],
  items: [
    {
      ...{ type: 1, name: " GitHub ", folderId: "f1", notes: "two\nlines" },
      fields: [
        { name: "recovery", value: "r-1", type: 1 },
        { name: "on", value: true, type: 2 },
        { name: "none", value: null, type: 3 },
      ],
      login: {
        ...{ username: "me", password: "pw", totp: "otpauth://totp/x?secret=ABCD" },
        uris: [{ uri: "https://a" }, { uri: "https://b" }],
        fido2Credentials: [{ credentialId: "x" }],
        passwordRevisionDate: "2026-01-01",
      },
      passwordHistory: [{ password: "old" }],
    },
    { type: 2, name: "Note", folderId: null, notes: "text", secureNote: { type: 0 } },
    { type: 3, name: "Card", card: { cardholderName: "Me", number: "4111", expMonth: "1", brand: null, code: "" } },
    { type: 1, name: "Empty", login: {} },
    { type: 1, name: "", login: { password: "nameless" } },
    { type: 1, name: "back\\slash", login: { password: "x" } },
  ],
};

const bitwardenItem = { type: 1, name: "Old", login: { username: "u", password: "p" } };
const json: Readonly<Record<string, Case>> = {
  "values that are no strings": {
    input: JSON.stringify({
      ...{ a: { b: "1", c: { d: "2" } }, "e/f": "3" },
      ...{ number: 4, list: ["5"], nothing: null, "": "6" },
    }),
    flags: ["--format", "json"],
    stored: { "a/b": "1", "a/c/d": "2", "e/f": "3", untitled: "6" },
    says: [
      ": stored as untitled\n4 created, 0 replaced, 0 unchanged, 0 skipped, 3 not imported\n",
      ...["number", "list", "nothing"].map((name) => `not imported: ${name}: it is neither`),
    ],
    code: 2,
  },
  "nested names": { input: '{"a":{"b":"1"}}', stored: { "a/b": "1" }, says: ["the format is json\n"] },
  "Bitwarden's items of every kind": {
    input: JSON.stringify(bitwarden),
    stored: {
      ...{ "Work/Mail/GitHub/username": "me", "Work/Mail/GitHub/password": "pw" },
      ...{ "Work/Mail/GitHub/totp": "otpauth://totp/x?secret=ABCD", "Work/Mail/GitHub/url": "https://a\nhttps://b" },
      ...{ "Work/Mail/GitHub/notes": "two\nlines", "Work/Mail/GitHub/fields/recovery": "r-1" },
      ...{ "Work/Mail/GitHub/fields/on": "true", "Note/notes": "text" },
      ...{ "Card/cardholder-name": "Me", "Card/number": "4111", "Card/exp-month": "1" },
      ...{ "untitled/password": "nameless", "back-slash/password": "x" },
    },
    says: [
      ...["the format is bitwarden\n", "passkeys", "password history", "item 4 (Empty): it has only a title"],
      ...["item 5: stored as untitled\n", "item 6 (back\\slash): stored as back-slash\n"],
    ],
  },
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

const loginItem = {
  uuid: "i1",
  createdAt: 1_700_000_000,
  state: "active",
  overview: {
    title: "GitHub",
    url: "https://a",
    urls: ["https://a", "https://b"].map((address) => ({ label: "", url: address })),
  },
  details: {
    loginFields: [
      { name: "login", value: "me", designation: "username" },
      { name: "pass", value: "pw", designation: "password" },
      { name: "remember/me", value: "on" },
    ],
    notesPlain: "two\nlines",
    passwordHistory: [{ value: "old", time: 1 }],
    sections: [
      {
        title: "Security",
        fields: [
          { title: "one-time password", id: "T", value: { totp: "otpauth://totp/x?secret=ABCD" } },
          { title: "PIN", id: "p", value: { concealed: "1234" } },
          { title: "born", id: "b", value: { date: 86_400 } },
          { title: "home", id: "h", value: { address: { street: "s", city: "" } } },
          { title: "scan", id: "f", value: { file: { fileName: "a.pdf" } } },
        ],
      },
      { title: "", fields: [{ title: "", id: "key", value: { sshKey: { privateKey: "-----BEGIN" } } }] },
    ],
  },
};
const vaults = [
  { attrs: { name: "Private" }, items: [loginItem, { overview: { title: "" }, details: {} }] },
  {
    attrs: { name: "Work/Team" },
    items: [{ state: "archived", overview: { title: "Old" }, details: { password: "gone" } }],
  },
];

const keepassXml = `<?xml version="1.0" encoding="utf-8" standalone="yes"?>
<KeePassFile><Meta><RecycleBinEnabled>True</RecycleBinEnabled><RecycleBinUUID>YmluYmluYmluYmluYmluYg==</RecycleBinUUID></Meta>
<Root><Group><UUID>cm9v</UUID><Name>Root</Name>
  <Entry><UUID>e1</UUID><Times><CreationTime>2024-01-01T00:00:00Z</CreationTime></Times>
    <String><Key>Title</Key><Value>A / B</Value></String><String><Key>UserName</Key><Value>me</Value></String>
    <String><Key>Password</Key><Value ProtectInMemory="True">p&lt;&amp;w&#233; </Value></String>
    <String><Key>otp</Key><Value>otpauth://totp/x?secret=ABCD</Value></String><String><Key>PIN</Key><Value><![CDATA[1<2]]></Value></String>
    <String><Key>Notes</Key><Value/></String><Binary><Key>a.txt</Key><Value Ref="0"/></Binary>
    <History><Entry><String><Key>Title</Key><Value>Before</Value></String></Entry></History></Entry>
  <Entry><String><Key>Password</Key><Value>x</Value></String></Entry>
  <Group><UUID>Z3Jw</UUID><Name>Mail</Name><Entry><String><Key>Title</Key><Value>In</Value></String>
    <String><Key>Password</Key><Value>in</Value></String></Entry></Group>
  <Group><UUID>YmluYmluYmluYmluYmluYg==</UUID><Name>Trash of mine</Name><Entry><String><Key>Title</Key><Value>Gone</Value></String>
    <String><Key>Password</Key><Value>gone</Value></String></Entry></Group>
</Group></Root></KeePassFile>`;

const rest: Record<string, Case> = {
  "KeePass's XML, without history and the recycle bin, whatever that is called": {
    input: keepassXml,
    stored: {
      ...{ "A/B/username": "me", "A/B/password": "p<&wé ", "A/B/totp": "otpauth://totp/x?secret=ABCD" },
      ...{ "A/B/fields/PIN": "1<2", "Mail/In/password": "in", "untitled/password": "x" },
    },
    says: [
      ...["the format is keepass\n", "the recycle bin (1 entry)"],
      ...["entry A / B: its attachments", "entry A / B: its earlier versions"],
    ],
  },
  "a KeePass database": {
    input: Buffer.from("03d9a29a67fb4bb500000400", "hex"),
    stored: {},
    says: ["strongroom: standard input is a KeePass database: export it as XML, and import that\n"],
  },
  "a text after many empty lines": {
    input: `${"\n".repeat(5000)}what is this\n`,
    stored: {},
    says: ["the format is none that import knows: name it with --format"],
  },
  "--drop for a format without columns": {
    input: "A=1\n",
    flags: ["--drop", "A"],
    stored: {},
    says: ["the format dotenv has no columns"],
  },
};
for (const method of [0, 8]) {
  rest[`1Password's archive, compressed by method ${method}`] = {
    input: makeZip(
      { "export.attributes": "{}", "export.data": JSON.stringify({ accounts: [{ attrs: {}, vaults }] }) },
      { method },
    ),
    stored: {
      ...{ "Private/GitHub/username": "me", "Private/GitHub/password": "pw", "Private/GitHub/form/remember/me": "on" },
      ...{ "Private/GitHub/totp": "otpauth://totp/x?secret=ABCD", "Private/GitHub/Security/PIN": "1234" },
      ...{ "Private/GitHub/Security/born": "1970-01-02", "Private/GitHub/Security/home/street": "s" },
      ...{ "Private/GitHub/key": "-----BEGIN", "Private/GitHub/url": "https://a\nhttps://b" },
      ...{ "Private/GitHub/notes": "two\nlines", "archive/Work/Team/Old/password": "gone" },
    },
    says: ["the format is 1password", "its password history", "its files", "Private, item 2: it has only a title"],
  };
}
for (const [order, text] of Object.entries({
  little: Buffer.from("\ufeffA=1\r\n", "utf16le"),
  big: Buffer.from("\ufeffA=1\n", "utf16le").swap16(),
})) {
  const says = ["strongroom: standard input is UTF-16 text: save it as UTF-8\n"];
  rest[`UTF-16 with the ${order} end first`] = { input: text, stored: {}, says };
}
for (const [what, input, word] of [
  ["a DOCTYPE", '<!DOCTYPE a [<!ENTITY e "x">]><KeePassFile/>', "an export has no DOCTYPE"],
  ["values of a KDBX file", '<KeePassFile><Value Protected="True">s3cr3t</Value></KeePassFile>', "encrypted"],
  ["an unknown entity", "<KeePassFile>&s3cr3t;</KeePassFile>", "not valid XML (line 1)"],
  ["other XML", "<html/>", "not an XML export of KeePass"],
  ["a chain of elements", "<a>".repeat(100_000), "too deep"],
] as const)
  rest[`KeePass's XML with ${what}`] = { input, flags: ["--format", "keepass"], stored: {}, says: [word] };
for (const [format, input, word] of [
  ["dotenv", "A=1\nwhat is this", "line 2"],
  ["json", "{", "not valid JSON"],
  ["json", "[]", "not a JSON object"],
  ["json", '{"a":{"x":"1"},"b":[{"x":"2"}],"a" :"s3cr3t"}', "has a twice"],
  ["json", '{"a":{"\\"é":"1","\\"\\u00e9":"s3cr3t"}}', "twice"],
  ["json", '{"format":"strongroom-export","version":2,"secrets":[]}', "another version"],
  ["bitwarden", '{"encrypted":true,"data":"x"}', "choose the unencrypted JSON export"],
  ["json", '{"encrypted":false,"items":[]}', "looks like a Bitwarden export: use --format bitwarden"],
  ["bitwarden", "{}", "not a Bitwarden export"],
  ["keepassxc", "a,b\n1,2\n", "no column Group"],
  ["keepassxc", '"Group","Title","Password"\n"a","s3cr3t', "not valid CSV"],
  ["xml", "", "--format"],
] as const)
  rest[`${JSON.stringify(input)} as ${format}`] = { input, flags: ["--format", format], stored: {}, says: [word] };

describe("formats of strongroom import", () => {
  const server = shareLocalServer({}, mustInit);
  let folders = 0;

  async function stored(folder: string): Promise<Record<string, string>> {
    const entries = await mustList(server(), `?prefix=${folder}`);
    const rows = entries.map(async ({ path }) => {
      const { value, encoding, metadata } = await mustGet(server(), path);
      const { type } = metadata as { readonly type?: string };
      const [, name = ""] = /\/(password|totp)(?:-\d+)?(?:\/|$)/.exec(path) ?? [];
      const isUsual = type === { password: "password", totp: "other" }[name];
      const marks = [isUsual ? undefined : (type ?? "no type"), encoding].filter((mark) => mark !== undefined);
      return [path.slice(folder.length), [...marks, value].join(": ")];
    });
    return Object.fromEntries(await Promise.all(rows));
  }

  async function check(args: readonly string[], input: string | Buffer, wanted: Omit<Case, "input">): Promise<void> {
    const folder = `case-${folders++}/`;
    const finished = await strongroom(server(), ["import", "--prefix", folder, ...args], { input });
    const said = (finished.stdout + finished.stderr).replaceAll(folder, "");
    expect(await stored(folder), said).to.deep.equal(wanted.stored);
    for (const words of wanted.says ?? []) expect(said).to.contain(words);
    expect(said, "no message quotes a value").not.to.match(/s3cr3t|ann@mail/);
    const isRefused = Object.keys(wanted.stored).length === 0;
    expect(finished.code, said).to.equal(wanted.code ?? (isRefused ? 2 : 0));
    if (isRefused) expect(finished.stdout).to.equal("");
    if (finished.code === 0) expect(finished.stderr).to.match(/^(?:strongroom: the format is \S+\n)?$/);
  }

  const tables = { seeds, references, titles, "equal fields": equalFields, dotenv, CSV: csv, JSON: json, files: rest };
  for (const [kind, rows] of Object.entries(tables)) {
    for (const [what, wanted] of Object.entries(rows)) {
      const verb = Object.keys(wanted.stored).length === 0 ? "refuses" : "imports";
      it(`${verb} ${kind}: ${what}`, () => check([...(wanted.flags ?? []), "-"], wanted.input, wanted));
    }
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
          stored: { a: "password: pw", "a/notes": "Content-Transfer-Encoding: Base64\nx" },
        },
        "what age and PGP have encrypted": {
          files: { a: armour, b: "age-encryption.org/v1\n-> X", c: "-----BEGIN PGP MESSAGE-----\n", d: "p" },
          stored: { d: "password: p" },
          says: ["a: it is encrypted with age", "b: it is encrypted with age", "c: it is encrypted with PGP"],
          code: 2,
        },
        "seeds, two of them, and names with backslashes": {
          files: { "CORP\\svc": `p\n${url(seed)}\n${url(other)}\n`, only: `otpauth://hotp/x?secret=${seed}\n` },
          stored: { "CORP-svc": "password: p", "CORP-svc/totp": url(seed), "CORP-svc/totp-2": url(other) },
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

    it("imports a decrypted password store, and names what it cannot import", async () => {
      const root = temporaryDirectory();
      for (const directory of ["web/mail", ".git"]) mkdirSync(join(root, directory), { recursive: true });
      const written = {
        "web/mail/me": "pw\nuser: me\notpauth://hotp/x?secret=A\n",
        "web/code": "pw 4\notpauth://totp/x?secret=ABCD\r\nuser: me\n",
        "one-line": "pw 2\n",
        windows: "pw 3\r\nmore\r\n",
        key: "-----BEGIN KEY-----\nabc\n-----END KEY-----\n",
        empty: "",
        ".gpg-id": "me",
        ".git/config": "[core]",
      };
      for (const [name, content] of Object.entries(written)) writeFileSync(join(root, name), content);
      writeFileSync(join(root, "binary"), Buffer.from([0xff, 0xfe]));
      mkdirSync(join(root, "linked"));
      symlinkSync(join(root, "one-line"), join(root, "link"));
      symlinkSync("../web", join(root, "linked/web"));
      symlinkSync("../linked", join(root, "linked/self"));
      symlinkSync("/etc/hostname", join(root, "outside"));
      symlinkSync("nowhere", join(root, "broken"));
      const inWeb = (at: string) => ({
        [`${at}/mail/me`]: "password: pw",
        [`${at}/mail/me/notes`]: "user: me",
        [`${at}/code`]: "password: pw 4",
        [`${at}/code/totp`]: "otpauth://totp/x?secret=ABCD",
        [`${at}/code/notes`]: "user: me",
      });
      const own = { "one-line": "password: pw 2", link: "password: pw 2", windows: "password: pw 3" };
      await check(["--format", "pass", root], "", {
        stored: {
          ...inWeb("web"),
          ...inWeb("linked/web"),
          ...own,
          ...{ "windows/notes": "more", key: written.key, empty: "password: " },
        },
        says: [
          "binary: it is not UTF-8",
          "web/mail/me, its URL: no one-time code can be computed: it is counter-based (HOTP)",
          "linked/self: it is a link to a folder that it is in",
          "outside: it is a link to a place outside the store",
          "broken: it is a link to what does not exist",
        ],
        code: 2,
      });
    });

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
      const kept = Object.values(await stored(folder)).map((value) => value.replace(/^password: /, ""));
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
      await check([root], "", {
        stored: Object.fromEntries(["a", "sub/up", "chain"].map((name) => [`web/${name}`, "password: p"])),
      });
    });
  });

  describe("1Password's archives", () => {
    it("reads a .1pux with a date that is none, and an item of many fields", () => {
      const value = (i: number) => (i === 0 ? { date: 1e300 } : { string: "v" });
      const fields = Array.from({ length: 150_000 }, (_, i) => ({ title: `f${i}`, id: `f${i}`, value: value(i) }));
      const item = { uuid: "i", overview: { title: "Many" }, details: { sections: [{ title: "", fields }] } };
      const content = { accounts: [{ attrs: {}, vaults: [{ attrs: {}, items: [item] }] }] };
      const { found } = readOnePassword(makeZip({ "export.data": JSON.stringify(content) }), "x.1pux");
      expect(found.filter(({ value }) => value === "v")).to.have.length(149_999);
    });

    it("refuses a .1pux that would fill the memory, before it expands it", () => {
      const bomb = makeZip({ "export.data": " ".repeat(17 * 2 ** 20) });
      expect(() => readOnePassword(bomb, "x.1pux")).to.throw(
        CommandFailure,
        /x\.1pux: its content is 100 times as large/,
      );
      const sizeAt = bomb.lastIndexOf("PK\u0001\u0002", undefined, "latin1") + 24;
      bomb.writeUInt32LE(129 * 2 ** 20, sizeAt);
      expect(() => readOnePassword(bomb, "x.1pux")).to.throw(CommandFailure, /more than 128 MiB/);
      bomb.writeUInt32LE(1000, sizeAt); // a lie: what is expanded ends there
      expect(() => readOnePassword(bomb, "x.1pux")).to.throw(CommandFailure, /damaged ZIP archive/);
    });

    it("refuses a .1pux that is damaged anywhere, with a message instead of a crash", async () => {
      const whole = makeZip({ "export.data": JSON.stringify({ accounts: [] }) });
      for (let cut = 4; cut < whole.length; cut += 7) {
        expect(() => readOnePassword(whole.subarray(0, cut), "x.1pux"), `cut at ${cut}`).to.throw(CommandFailure);
      }
      for (let at = 0; at < whole.length; at++) {
        const flipped = Buffer.from(whole);
        flipped[at] = (flipped[at] ?? 0) ^ 0xff;
        try {
          expect(readOnePassword(flipped, "x.1pux").found).to.deep.equal([]); // a byte that has no meaning
        } catch (error) {
          expect(error, `byte ${at}`).to.be.instanceOf(CommandFailure);
        }
      }
      expect(() => readOnePassword(makeZip({ other: "x" }, { method: 0 }), "x.1pux")).to.throw(
        "it is not a 1Password export",
      );
    });
  });
});
