/** `strongroom import`: the formats, the summary, and that nothing is lost silently. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { readOnePassword } from "../../src/cli/import/one-password.js";
import { CommandFailure } from "../../src/cli/kit/errors.js";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, mainFile, node } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustLock, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, start, strongroom } from "./run-command.js";
import { makeZip } from "./zip-archive.js";

describe("strongroom import, through the real command", () => {
  const server = shareLocalServer({ maxValueBytes: 4096 }, mustInit);

  let folders = 0;

  /** A folder of the vault for only one test. */
  function newFolder(): string {
    return `test-${folders++}/`;
  }

  /** All secrets in the folder: `type: value` by path. */
  async function stored(on: TestServer, folder: string): Promise<Record<string, string>> {
    const entries = await mustList(on, `?prefix=${folder}`);
    const rows = entries.map(async ({ path }) => {
      const { value, metadata } = await mustGet(on, path);
      const { type } = metadata as { type?: string };
      return [path.slice(folder.length), type === undefined ? value : `${type}: ${String(value)}`];
    });
    return Object.fromEntries(await Promise.all(rows));
  }

  type Source = { readonly format: string; readonly input: string | object; readonly args?: readonly string[] };

  function importText(folder: string, { format, input, args = [] }: Source, on = server()) {
    const text = typeof input === "string" ? input : JSON.stringify(input);
    return strongroom(on, ["import", "--format", format, "--prefix", folder, ...args, "-"], { input: text });
  }

  type Partly = {
    readonly stderr: readonly string[];
    readonly stdout: readonly string[];
    readonly secrets: Readonly<Record<string, string>>;
  };

  /** Imports an export of which a part is left out or renamed: the command says what, and ends with 0. */
  function mustImportAll(args: readonly string[], input: string | Buffer, wanted: Partly): Promise<void> {
    return mustImportPartly(args, input, wanted, 0);
  }

  /** Imports an export of which not everything can be stored: the command says what, and ends with 2. */
  async function mustImportPartly(
    args: readonly string[],
    input: string | Buffer,
    wanted: Partly,
    exit = 2,
  ): Promise<void> {
    const folder = newFolder();
    const { code, stdout, stderr } = await strongroom(server(), ["import", "--prefix", folder, ...args, "-"], {
      input,
    });
    expect(code, stderr).to.equal(exit);
    for (const words of wanted.stderr) expect(stderr).to.contain(words);
    for (const words of wanted.stdout) expect(stdout).to.contain(words);
    expect(await stored(server(), folder)).to.deep.equal(wanted.secrets);
  }

  const bitwarden = {
    encrypted: false,
    folders: [{ id: "f1", name: "Work/Mail" }],
    items: [
      {
        type: 1,
        name: " GitHub ",
        folderId: "f1",
        notes: "two\nlines",
        fields: [
          { name: "recovery", value: "r-1", type: 1 },
          { name: "on", value: true, type: 2 },
          { name: "none", value: null, type: 3 },
        ],
        login: {
          username: "me",
          password: "pw",
          totp: "otpauth://totp/x?secret=ABCD",
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

  const keepassxc = [
    '"Group","Title","Username","Password","URL","Notes","TOTP","Icon","Last Modified","Created","Tags"',
    '"Root/Internet","Bank","me","p""w,1","https://bank","line 1',
    'line 2","otpauth://totp/x?secret=ABCD","0","2026","2025","t"',
    '"Root","Top","","top","","","","0","","",""',
    '"Root","","","untitled","","","","0","","",""',
    '"Root","Nothing","","","","","","0","","",""',
  ].join("\n");

  describe("import: formats", () => {
    it("reads dotenv", async () => {
      const folder = newFolder();
      const input = "# c\nexport DB_URL='postgres://x' # c\nKEY=\"a\\nb\"\nEMPTY=\n";
      const { stdout } = mustDo(await importText(folder, { format: "dotenv", input }));
      expect(stdout).to.equal("3 created, 0 replaced, 0 unchanged, 0 skipped\n");
      expect(await stored(server(), folder)).to.deep.equal({ DB_URL: "postgres://x", KEY: "a\nb", EMPTY: "" });
    });

    it("reads a quoted dotenv value of 10 MB, and refuses it for its size", async () => {
      const input = `A='${"x".repeat(10e6)}'\nB=b\n`;
      const wanted = { stdout: ["1 created", "1 not imported"], secrets: { B: "b" } };
      await mustImportPartly(["--format", "dotenv"], input, { ...wanted, stderr: ["line 1", "the limit is 4,096"] });
    });

    it("closes a dotenv value at the last escaped quote that ends a line, where no other does", async () => {
      const folder = newFolder();
      const input = `A='a\\'\nB="b\\" # c\nc\\" \nC='it\\'s' # it's\n`;
      const { stdout } = mustDo(await importText(folder, { format: "dotenv", input }));
      expect(stdout).to.contain('line 2 (B): the backslash before " is left out');
      expect(await stored(server(), folder)).to.deep.equal({ A: "a\\", B: 'b" # c\nc\\', C: "it's" });
    });

    it("reads plain JSON, nested or flat, and reports what is not a string", async () => {
      const folder = newFolder();
      const input = { a: { b: "1", c: { d: "2" } }, "e/f": "3", number: 4, list: ["5"], nothing: null, "": "6" };
      const { code, stdout, stderr } = await importText(folder, { format: "json", input });
      expect(code).to.equal(2);
      expect(stdout).to.equal(`: stored as untitled\n4 created, 0 replaced, 0 unchanged, 0 skipped, 3 not imported\n`);
      for (const name of ["number", "list", "nothing"])
        expect(stderr).to.contain(`not imported: ${name}: it is neither`);
      expect(await stored(server(), folder)).to.deep.equal({ "a/b": "1", "a/c/d": "2", "e/f": "3", untitled: "6" });
    });

    it("reads a decrypted password store, and reports what it cannot import", async () => {
      const [folder, root] = [newFolder(), temporaryDirectory()];
      for (const directory of ["web/mail", ".git"]) mkdirSync(join(root, directory), { recursive: true });
      const files = {
        "web/mail/me": "pw\nuser: me\notpauth://hotp/x?secret=A\n",
        "web/code": "pw 4\notpauth://totp/x?secret=ABCD\r\nuser: me\n",
        "one-line": "pw 2\n",
        windows: "pw 3\r\nmore\r\n",
        key: "-----BEGIN KEY-----\nabc\n-----END KEY-----\n",
        empty: "",
        ".gpg-id": "me",
        ".git/config": "[core]",
      };
      for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content);
      writeFileSync(join(root, "binary"), Buffer.from([0xff, 0xfe]));
      mkdirSync(join(root, "linked"));
      symlinkSync(join(root, "one-line"), join(root, "link"));
      symlinkSync("../web", join(root, "linked/web"));
      symlinkSync("../linked", join(root, "linked/self"));
      symlinkSync("/etc/hostname", join(root, "outside"));
      symlinkSync("nowhere", join(root, "broken"));
      const args = ["import", "--format", "pass", "--prefix", folder, root];
      const { code, stderr } = await strongroom(server(), args);
      expect(code).to.equal(2);
      expect(stderr).to.contain("binary: it is not UTF-8");
      expect(stderr).to.contain("web/mail/me, its URL: no one-time code can be computed: it is counter-based (HOTP)");
      expect(stderr).to.contain("linked/self: it is a link to a folder that it is in");
      expect(stderr).to.contain("outside: it is a link to a place outside the store");
      expect(stderr).to.contain("broken: it is a link to what does not exist");
      const inWeb = (at: string) => ({
        [`${at}/mail/me`]: "password: pw",
        [`${at}/mail/me/notes`]: "user: me",
        [`${at}/code`]: "password: pw 4",
        [`${at}/code/totp`]: "other: otpauth://totp/x?secret=ABCD",
        [`${at}/code/notes`]: "user: me",
      });
      expect(await stored(server(), folder)).to.deep.equal({
        ...inWeb("web"),
        ...inWeb("linked/web"),
        "one-line": "password: pw 2",
        link: "password: pw 2",
        windows: "password: pw 3",
        "windows/notes": "more",
        key: files.key,
        empty: "password: ",
      });
    });

    it("reads Bitwarden's JSON, and reports what a vault cannot hold", async () => {
      const folder = newFolder();
      const { code, stdout, stderr } = await importText(folder, { format: "bitwarden", input: bitwarden });
      expect(code, stderr).to.equal(0);
      for (const what of ["passkeys", "password history", "item 4 (Empty): it has only a title"])
        expect(stdout).to.contain(what);
      expect(stdout).to.contain(`item 5: stored as ${folder}untitled\n`);
      expect(stdout).to.contain(`item 6 (back\\slash): stored as ${folder}back-slash\n`);
      expect(await stored(server(), folder)).to.deep.equal({
        "Work/Mail/GitHub/username": "me",
        "Work/Mail/GitHub/password": "password: pw",
        "Work/Mail/GitHub/totp": "other: otpauth://totp/x?secret=ABCD",
        "Work/Mail/GitHub/url": "https://a\nhttps://b",
        "Work/Mail/GitHub/notes": "two\nlines",
        "Work/Mail/GitHub/fields/recovery": "r-1",
        "Work/Mail/GitHub/fields/on": "true",
        "Note/notes": "text",
        "Card/cardholder-name": "Me",
        "Card/number": "4111",
        "Card/exp-month": "1",
        "untitled/password": "password: nameless",
        "back-slash/password": "password: x",
      });
    });

    it("leaves out what is in KeePassXC's recycle bin", async () => {
      const folder = newFolder();
      const input = '"Group","Title","Password"\n"Root/Recycle Bin","Old","gone"\n"Root/Mail","New","kept"\n';
      const { stdout } = mustDo(await importText(folder, { format: "keepassxc", input }));
      expect(stdout).to.contain("row 1 (Old): it is in the recycle bin");
      expect(await stored(server(), folder)).to.deep.equal({ "Mail/New/password": "password: kept" });
    });

    const lastpass =
      "url,username,password,totp,extra,name,grouping,fav\nhttps://a.example,me,pw,,n,Site,Work\\Web,0\n";
    const chrome = "name,url,username,password,note\na.example,https://a.example/,me,pw,\n";
    const firefox = '"url","username","password","httpRealm","guid"\n"https://b.example","me","pw","","{1}"\n';
    const guessed: readonly (readonly [what: string, input: string, path: string])[] = [
      ["dotenv", "# comment\n\nexport A_KEY=1\n", "A_KEY"],
      ["json", '{"a":{"b":"1"}}', "a/b"],
      ["bitwarden", JSON.stringify(bitwarden), "Work/Mail/GitHub/password"],
      ["keepassxc", '"Group","Title","Password"\n"Root","Top","p"\n', "Top/password"],
      ["lastpass", lastpass, "Work/Web/Site/password"],
      ["browser", chrome, "a.example/password"],
      ["browser", firefox, "b.example/username"],
    ];
    for (const [what, input, path] of guessed) {
      it(`finds out that ${JSON.stringify(input.slice(0, 24))} is ${what}`, async () => {
        const folder = newFolder();
        const { stderr } = await strongroom(server(), ["import", "--prefix", folder, "-"], { input });
        expect(stderr).to.contain(`strongroom: the format is ${what}\n`);
        expect(await stored(server(), folder)).to.include.keys(path);
      });
    }

    it("finds out at once that a text behind many empty lines is of no format", async () => {
      const { code, stderr } = await strongroom(server(), ["import", "-"], {
        input: `${"\n".repeat(5000)}what is this\n`,
      });
      expect(code).to.equal(2);
      expect(stderr).to.contain("the format is none that import knows: name it with --format");
    });

    it("says what to do about KeePass's database and about text in UTF-16", async () => {
      const database = Buffer.from("03d9a29a67fb4bb500000400", "hex");
      const cases = [
        [database, "standard input is a KeePass database: export it as XML, and import that"],
        [Buffer.from("\ufeffA=1\r\n", "utf16le"), "standard input is UTF-16 text: save it as UTF-8"],
        [Buffer.from("\ufeffA=1\n", "utf16le").swap16(), "standard input is UTF-16 text: save it as UTF-8"],
      ] as const;
      for (const [input, problem] of cases) {
        const { code, stderr } = await strongroom(server(), ["import", "-"], { input });
        expect(stderr).to.equal(`strongroom: ${problem}\n`);
        expect(code).to.equal(2);
      }
    });

    const loginItem = {
      uuid: "i1",
      createdAt: 1_700_000_000,
      state: "active",
      overview: {
        title: "GitHub",
        url: "https://a",
        urls: [
          { label: "", url: "https://a" },
          { label: "", url: "https://b" },
        ],
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
    const onePassword = {
      accounts: [
        {
          attrs: {},
          vaults: [
            { attrs: { name: "Private" }, items: [loginItem, { overview: { title: "" }, details: {} }] },
            {
              attrs: { name: "Work/Team" },
              items: [{ state: "archived", overview: { title: "Old" }, details: { password: "gone" } }],
            },
          ],
        },
      ],
    };

    it("reads 1Password's .1pux, and says what it leaves out", async () => {
      for (const method of [0, 8]) {
        const input = makeZip({ "export.attributes": "{}", "export.data": JSON.stringify(onePassword) }, { method });
        const stderr = ["the format is 1password"];
        const stdout = ["its password history", "its files", "Private, item 2: it has only a title"];
        const secrets = {
          "Private/GitHub/username": "me",
          "Private/GitHub/password": "password: pw",
          "Private/GitHub/form/remember/me": "on",
          "Private/GitHub/totp": "other: otpauth://totp/x?secret=ABCD",
          "Private/GitHub/Security/PIN": "1234",
          "Private/GitHub/Security/born": "1970-01-02",
          "Private/GitHub/Security/home/street": "s",
          "Private/GitHub/key": "-----BEGIN",
          "Private/GitHub/url": "https://a\nhttps://b",
          "Private/GitHub/notes": "two\nlines",
          "archive/Work/Team/Old/password": "password: gone",
        };
        await mustImportAll([], input, { stderr, stdout, secrets });
      }
    });

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

    const keepass = `<?xml version="1.0" encoding="utf-8" standalone="yes"?>
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

    it("reads KeePass's XML without history and the recycle bin, whatever that is called", async () => {
      const stderr = ["the format is keepass\n"];
      const stdout = ["the recycle bin (1 entry)", "entry A / B: its attachments", "entry A / B: its earlier versions"];
      const secrets = {
        "A/B/username": "me",
        "A/B/password": "password: p<&wé ",
        "A/B/totp": "other: otpauth://totp/x?secret=ABCD",
        "A/B/fields/PIN": "1<2",
        "Mail/In/password": "password: in",
        "untitled/password": "password: x",
      };
      await mustImportAll([], keepass, { stderr, stdout, secrets });
    });

    for (const [what, input, word] of [
      ["a DOCTYPE", '<!DOCTYPE a [<!ENTITY e "x">]><KeePassFile/>', "an export has no DOCTYPE"],
      ["values of a KDBX file", '<KeePassFile><Value Protected="True">s3cr3t</Value></KeePassFile>', "encrypted"],
      ["an unknown entity", "<KeePassFile>&s3cr3t;</KeePassFile>", "not valid XML (line 1)"],
      ["other XML", "<html/>", "not an XML export of KeePass"],
      ["a chain of elements", `${"<a>".repeat(100_000)}`, "too deep"],
    ] as const) {
      it(`refuses KeePass's XML with ${what}, and quotes nothing of it`, async () => {
        const finished = await importText(newFolder(), { format: "keepass", input });
        mustRefuseWith(finished, 2, word);
        expect(finished.stderr).not.to.contain("s3cr3t");
      });
    }

    it("asks for the format of a file that it does not know", async () => {
      mustRefuseWith(await strongroom(server(), ["import", "-"], { input: "just words" }), 2, "name it with --format");
    });

    it("reads KeePassXC's CSV, without the root group", async () => {
      const stderr: string[] = [];
      const stdout = ["the column Tags", "row 3: stored as", "row 4 (Nothing): it has only a title"];
      const secrets = {
        "Internet/Bank/username": "me",
        "Internet/Bank/password": 'password: p"w,1',
        "Internet/Bank/url": "https://bank",
        "Internet/Bank/notes": "line 1\nline 2",
        "Internet/Bank/totp": "other: otpauth://totp/x?secret=ABCD",
        "Top/password": "password: top",
        "untitled/password": "password: untitled",
      };
      await mustImportAll(["--format", "keepassxc", "--drop", "Tags"], keepassxc, { stderr, stdout, secrets });
    });

    const columns = (names: string, ...rows: string[]) => [names, ...rows, ""].join("\n");
    const foreign = {
      "an unknown program with a browser's columns": "url,username,password,secretAnswer",
      "an unknown program": "title,username,password,secretAnswer",
      "NordPass with a new column": "name,url,username,password,note,cardholdername,cardnumber,cvc,folder,secretAnswer",
    };
    for (const [what, header] of Object.entries(foreign)) {
      it(`refuses the CSV of ${what}, and names its columns`, async () => {
        const input = columns(header, header.replace(/\w+/g, "s3cr3t"));
        const refused = await strongroom(server(), ["import", "--prefix", newFolder(), "-"], { input });
        mustRefuseWith(refused, 2, "secretAnswer");
        expect(refused.stderr).to.not.contain("s3cr3t");
      });
    }

    it("quotes nothing of CSV without a header", async () => {
      const input = '"Bank","aib","ann@mail.example","s3cr3t"\n"Bank","aib","ann@mail.example","s3cr3t"\n';
      const refused = await strongroom(server(), ["import", "-"], { input });
      mustRefuseWith(refused, 2, "the format is none that import knows");
      expect(refused.stderr).to.not.contain("s3cr3t").and.not.contain("ann@");
    });

    const lossy: readonly (readonly [what: string, input: string, flags: readonly string[], message: string])[] = [
      ["a column that is there twice", "url,username,password,note,note\nu,m,p,a,b\n", ["--drop", "note"], "twice"],
      ["a last row that is cut off", "name,url,username,password\na,https://a,m", [], "ends within its last row"],
      ["--drop for a format without columns", "A=1\n", ["--drop", "A"], "the format dotenv has no columns"],
      ["--drop of a column that is missing", "url,username,password\nu,m,p\n", ["--drop", "x"], "not in the file"],
    ];
    for (const [what, input, flags, message] of lossy) {
      it(`refuses CSV with ${what}`, async () => {
        const refused = await strongroom(server(), ["import", "--prefix", newFolder(), ...flags, "-"], { input });
        mustRefuseWith(refused, 2, message);
      });
    }

    const worldly: readonly (readonly [what: string, input: string, secrets: Readonly<Record<string, string>>])[] = [
      ["semicolons", "name;url;username;password;note\na;https://a;me;p;n\n", { "a/password": "password: p" }],
      ["tabs", "name\turl\tusername\tpassword\na\thttps://a\tme\tp,q\n", { "a/password": "password: p,q" }],
      ["short rows", "name,url,username,password,note\na,https://a,me,p\n", { "a/password": "password: p" }],
      ["an empty first line", "\r\nurl,username,password\nhttps://a,me,p\n", { "a/password": "password: p" }],
      [
        "a row of a group",
        "url,username,password,totp,extra,name,grouping,fav\nhttp://group,,,,,,G,0\nhttps://a,,p,,,A,G,0\n",
        { "G/A/password": "password: p" },
      ],
      [
        "a group's address and a user's name",
        "url,username,password,totp,extra,name,grouping,fav\nhttp://group,me,,,,A,G,0\n",
        { "G/A/username": "me" },
      ],
      [
        "a bin in Russian",
        '"Group","Title","Password"\n"R/Корзина","x","y"\n"R/M","a","p"\n',
        { "M/a/password": "password: p" },
      ],
      [
        "a bin in Japanese",
        '"Group","Title","Password"\n"R/ゴミ箱","x","y"\n"R/M","a","p"\n',
        { "M/a/password": "password: p" },
      ],
      [
        "no title",
        '"Group","Title","URL","Password"\n"R/M","","https://h.example/","p"\n',
        { "M/h.example/password": "password: p" },
      ],
      [
        "Safari's columns",
        "Title,URL,Username,Password,Notes,OTPAuth\nS,https://s,me,p,n,GEZDGNBVGY3TQOJQ\n",
        { "S/totp": "other: GEZDGNBVGY3TQOJQ" },
      ],
      [
        "1Password's columns",
        "Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes\nF,https://f,me,p,GEZDGNBVGY3TQOJQ,false,false,t,\n",
        { "F/totp": "other: GEZDGNBVGY3TQOJQ", "F/tags": "t" },
      ],
    ];
    for (const [what, input, secrets] of worldly) {
      it(`reads CSV with ${what}`, async () => {
        const folder = newFolder();
        const { code, stderr } = await strongroom(server(), ["import", "--prefix", folder, "-"], { input });
        expect(code, stderr).to.equal(0);
        const found = await stored(server(), folder);
        expect(found).to.include(secrets);
        expect(Object.values(found)).not.to.include("password: y");
      });
    }

    it("stores two fields of one name in an item, without --on-duplicate", async () => {
      const folder = newFolder();
      const fields = ["1", "2"].map((value) => ({ name: "code", value }));
      mustDo(await importText(folder, { format: "bitwarden", input: { items: [{ name: "I", fields }] } }));
      expect(await stored(server(), folder)).to.deep.equal({ "I/fields/code": "1", "I/fields/code-2": "2" });
    });

    for (const [format, input, word] of [
      ["dotenv", "A=1\nwhat is this", "line 2"],
      ["json", "{", "not valid JSON"],
      ["json", "[]", "not a JSON object"],
      ["json", '{"a":{"x":"1"},"b":[{"x":"2"}],"a" :"secret"}', "has a twice"],
      ["json", '{"a":{"\\"é":"1","\\"\\u00e9":"secret"}}', "twice"],
      ["json", '{"format":"strongroom-export","version":2,"secrets":[]}', "another version"],
      ["bitwarden", '{"encrypted":true,"data":"x"}', "choose the unencrypted JSON export"],
      ["json", '{"encrypted":false,"items":[]}', "looks like a Bitwarden export: use --format bitwarden"],
      ["bitwarden", "{}", "not a Bitwarden export"],
      ["keepassxc", "a,b\n1,2\n", "no column Group"],
      ["keepassxc", '"Group","Title","Password"\n"a","secret', "not valid CSV"],
      ["xml", "", "--format"],
    ] as const) {
      it(`rejects ${format} ${JSON.stringify(input)}`, async () => {
        const refused = await importText(newFolder(), { format, input });
        mustRefuseWith(refused, 2, word);
        expect(refused.stderr).to.not.contain("secret"); // no message quotes a value
      });
    }

    it("takes a directory without a format for a password store only where pass has marked it", async () => {
      const [folder, root] = [newFolder(), temporaryDirectory()];
      writeFileSync(join(root, "notes.txt"), "no secret\n");
      const args = ["import", "--prefix", folder, root];
      mustRefuseWith(await strongroom(server(), args), 2, "a directory without .gpg-id", "--format pass");
      writeFileSync(join(root, ".gpg-id"), "me\n");
      expect((await strongroom(server(), args)).code).to.equal(0);
      expect(await stored(server(), folder)).to.deep.equal({ "notes.txt": "password: no secret" });
    });

    it("rejects an unreadable source and an invalid prefix", async () => {
      mustRefuseWith(await strongroom(server(), ["import", "--format", "json", "/no/such"]), 2, "cannot be read");
      mustRefuseWith(await strongroom(server(), ["import", "--format", "pass", "/no/such"]), 2, "cannot be read");
      mustRefuseWith(await importText("a//b", { format: "json", input: {} }), 2, "--prefix", "empty segment");
    });
  });

  describe("import: secrets that are already stored", () => {
    const source = (value: string, args: readonly string[] = []): Source => {
      return { format: "json", input: { old: value, same: "same", fresh: "fresh" }, args };
    };

    it("skips and lists them, or replaces them with --force or --replace; equal ones are unchanged", async () => {
      for (const force of ["--force", "--replace"]) {
        const folder = newFolder();
        await mustPut(server(), `${folder}old`, { value: "was" });
        await mustPut(server(), `${folder}same`, { value: "same" });
        const { code, stdout: first } = await importText(folder, source("is"));
        expect(code, "`import && rm` must keep the file").to.equal(7);
        expect(first).to.contain(`skipped, stored with another value: ${folder}old\n`).and.contain("--replace");
        expect(first).to.match(/^1 created, 0 replaced, 1 unchanged, 1 skipped$/m);
        expect(await stored(server(), folder)).to.deep.equal({ old: "was", same: "same", fresh: "fresh" });
        const second = mustDo(await importText(folder, source("is", [force, "--json"]))).stdout;
        const counts = { created: 0, replaced: 1, unchanged: 2, skipped: [], refused: [], leftOut: [], remarks: [] };
        expect(JSON.parse(second)).to.deep.equal({ ok: true, dryRun: false, total: 3, ...counts });
        expect(await stored(server(), folder)).to.deep.equal({ old: "is", same: "same", fresh: "fresh" });
      }
    });

    it("prints the same summary with --dry-run, and stores nothing", async () => {
      const folder = newFolder();
      await mustPut(server(), `${folder}old`, { value: "was" });
      const input = { old: "is", fresh: "fresh", large: "x".repeat(5000), bad: { "..": 1 } };
      const dry = await importText(folder, { format: "json", input, args: ["--dry-run", "--force", "--json"] });
      expect(await stored(server(), folder)).to.deep.equal({ old: "was" });
      const real = await importText(folder, { format: "json", input, args: ["--force", "--json"] });
      expect([dry.code, real.code]).to.deep.equal([2, 2]);
      const summary = JSON.parse(real.stdout) as Record<string, unknown>;
      expect(JSON.parse(dry.stdout)).to.deep.equal({ ...summary, dryRun: true });
      expect(summary).to.include({ ok: false, created: 1, replaced: 1 });
      expect(JSON.stringify(summary["refused"]))
        .to.contain("the value is 5,000 bytes; the limit is 4,096")
        .and.contain("..");
      expect(await stored(server(), folder)).to.deep.equal({ old: "is", fresh: "fresh" });
    });

    it("rejects two entries with the same path before anything is stored, and names both", async () => {
      const folder = newFolder();
      const clash = { format: "json", input: { fresh: "1", a: { b: "2" }, "a/b": "3" } };
      mustRefuseWith(await importText(folder, clash), 7, `${folder}a/b: a → b and a/b`);
      const composed = { format: "json", input: { "\u00e9": "1", "e\u0301": "2" } };
      mustRefuseWith(await importText(folder, composed), 7, "several entries");
      expect(await stored(server(), folder)).to.deep.equal({});
    });

    describe("--on-duplicate", () => {
      const login = (id: string, created: string, username: string, password: string) => {
        return { name: "Mail", id, creationDate: created, login: { username, password } };
      };
      const [oldest, newest] = [login("b", "2024-01-01", "first", "p1"), login("a", "2025-01-01", "second", "p2")];
      const middle = login("c", "2024-06-01", "third", "p3");
      const bitwardenSource = (items: readonly object[], action?: string): Source => {
        return { format: "bitwarden", input: { items }, args: action === undefined ? [] : ["--on-duplicate", action] };
      };
      const both = {
        "Mail/username": "first",
        "Mail/password": "password: p1",
        "Mail-2/username": "second",
        "Mail-2/password": "password: p2",
      };

      it("suffix, the default, renames a whole item, by creation time, and is the same at every import", async () => {
        const folder = newFolder();
        const first = mustDo(await importText(folder, bitwardenSource([newest, oldest])));
        expect(first.stdout).to.contain(`item 1 (Mail): stored as ${folder}Mail-2\n`);
        expect(await stored(server(), folder)).to.deep.equal(both);
        const again = mustDo(await importText(folder, bitwardenSource([oldest, newest], "suffix")));
        expect(again.stdout).to.contain("0 created, 0 replaced, 4 unchanged, 0 skipped\n");
        const later = login("0", "2026-01-01", "fourth", "p4");
        const more = mustDo(await importText(folder, bitwardenSource([later, newest, oldest], "suffix")));
        expect(more.stdout).to.contain("2 created, 0 replaced, 4 unchanged, 0 skipped\n");
        expect(await stored(server(), folder)).to.include({ ...both, "Mail-3/username": "fourth" });
      });

      it("suffix uses no path that another entry has", async () => {
        const folder = newFolder();
        const taken = { ...middle, name: "Mail-2" };
        mustDo(await importText(folder, bitwardenSource([oldest, newest, taken], "suffix")));
        const found = await stored(server(), folder);
        expect(found).to.include({ "Mail/username": "first", "Mail-2/username": "third", "Mail-3/username": "second" });
      });

      it("suffix renames fields of the same name in one item, rows of KeePassXC and names of JSON", async () => {
        const folder = newFolder();
        const fields = [1, 2, 3].map((n) => ({ name: "code", value: `c${n}` }));
        mustDo(await importText(folder, bitwardenSource([{ ...oldest, fields }], "suffix")));
        const codes = { "Mail/fields/code": "c1", "Mail/fields/code-2": "c2", "Mail/fields/code-3": "c3" };
        expect(await stored(server(), folder)).to.include(codes);
        const rows = ['"Group","Title","Password","Created"', '"R","T","new","2025"', '"R","T","old","2024"'];
        const csv = { format: "keepassxc", input: rows.join("\n"), args: ["--on-duplicate", "suffix"] };
        mustDo(await importText(folder, csv));
        const json = { format: "json", input: { x: { y: "1" }, "x/y": "2" }, args: ["--on-duplicate", "suffix"] };
        mustDo(await importText(folder, json));
        const others = { "T/password": "password: old", "T-2/password": "password: new", "x/y": "1", "x/y-2": "2" };
        expect(await stored(server(), folder)).to.include(others);
      });

      it("suffix renames 50,000 items of one name, and one item of 50,000 fields of one name", async () => {
        const rows = Array.from({ length: 50_000 }, () => ",,p,,,Site,,0");
        const input = ["url,username,password,totp,extra,name,grouping,fav", ...rows].join("\n");
        const args = ["--on-duplicate", "suffix", "--dry-run"];
        const csv = mustDo(await importText(newFolder(), { format: "lastpass", input, args }));
        expect(csv.stdout).to.contain("50000 created");
        const fields = rows.map(() => ({ name: "code", value: "c" }));
        const item = { ...oldest, fields };
        const json = await importText(newFolder(), { format: "bitwarden", input: { items: [item] }, args });
        expect(json.stdout).to.contain("50002 created");
      });

      it("skip leaves out later items as a whole, and lists them", async () => {
        const folder = newFolder();
        const url = { ...newest, login: { ...newest.login, uris: [{ uri: "https://a" }] } };
        const { stdout } = mustDo(await importText(folder, bitwardenSource([url, oldest], "skip")));
        expect(stdout).to.contain("left out: item 1 (Mail), username, and all of its item: same path as item 2 (Mail)");
        const { "Mail/username": username, "Mail/password": password } = both;
        expect(await stored(server(), folder)).to.deep.equal({ "Mail/username": username, "Mail/password": password });
      });

      it("error names both items and both ways out", async () => {
        const refused = await importText(newFolder(), bitwardenSource([oldest, newest], "error"));
        mustRefuseWith(refused, 7, "item 1 (Mail)", "item 2 (Mail)", "--on-duplicate suffix or skip");
        mustRefuseWith(await importText(newFolder(), bitwardenSource([oldest], "rename")), 2, "error, suffix, skip");
      });
    });

    it("prints only errors with -q", async () => {
      const input = { a: "1", n: 1 };
      const { stdout, stderr } = await importText(newFolder(), { format: "json", input, args: ["-q"] });
      expect(stdout).to.equal("");
      expect(stderr).to.match(/^strongroom: not imported: n: .*\n$/);
    });
  });

  describe("import: many secrets, and interruptions", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`n-${i}`, `value ${i}`]));

    /** Four batches, since one has at most 1,000. */
    const inBatches = Object.fromEntries(Array.from({ length: 3_046 }, (_, i) => [`n-${i}`, "v"]));

    it("reports what was stored when the storage fails half-way, and continues when run again", async () => {
      let isFull = false;
      const rename: FileOperations["rename"] = async (from, to) => {
        if (isFull && /journal-[3-9]$/.test(to)) throw Object.assign(new Error(), { code: "ENOSPC" });
        return systemFiles.rename(from, to);
      };
      const failing = await startLocalServer({ files: { ...systemFiles, rename } });
      await mustInit(failing);
      const source = { format: "json", input: inBatches, args: ["--json", "--timeout", "10m"] }; // for a busy machine
      isFull = true;
      const { code, stdout, stderr } = await importText("m", source, failing);
      expect(code, stdout).to.equal(1);
      isFull = false;
      const { created } = JSON.parse(stdout) as { created: number };
      expect(created).to.be.above(0).and.below(3_046);
      expect((await mustStatus(failing))["secretCount"]).to.be.within(created, 3_045);
      expect(stderr).to.contain(`stopped after ${created} of 3046 entries: run it again to continue`);
      mustDo(await importText("m", source, failing));
      expect((await mustStatus(failing))["secretCount"]).to.equal(3_046);
    });

    it("exits 13 on SIGINT, and reports what was stored", async function () {
      needs(this, existsSync("/proc/self/status"), "/proc");
      let atBatch = async () => {};
      const rename: FileOperations["rename"] = async (from, to) => {
        if (/journal-\d+$/.test(to)) await atBatch(); // another file may be written before the command can take a signal
        return systemFiles.rename(from, to);
      };
      const slow = await startLocalServer({ files: { ...systemFiles, rename } });
      await mustInit(slow);
      const input = JSON.stringify(inBatches); // 2 batches are sent at a time
      const { child, finished } = start(slow, ["import", "--format", "json", "-"], { input });
      const waits = () =>
        Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]);
      atBatch = async () => {
        atBatch = async () => {}; // a second signal would end it at once
        const before = waits();
        child.kill("SIGINT");
        while (waits() === before) await sleep(5); // until it has taken the signal, and waits for this batch again
      };
      const { code, stdout, stderr } = await finished;
      expect(code, stderr).to.equal(13);
      const [, created] = /^(\d+) created/m.exec(stdout) ?? [];
      expect(Number(created)).to.be.above(0);
      expect(stderr).to.contain(`interrupted\nstrongroom: stopped after ${String(created)} of 3046 entries`);
      expect((await mustStatus(slow))["secretCount"]).to.equal(Number(created));
    });

    it("stores all on a server that accepts smaller batches only", async () => {
      const small = await startLocalServer({ maxBatchBytes: 20_000 });
      await mustInit(small);
      const input = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`n-${i}`, "x".repeat(2000)]));
      const { stdout } = mustDo(await importText("m", { format: "json", input }, small));
      expect(stdout).to.equal("30 created, 0 replaced, 0 unchanged, 0 skipped\n");
      const again = mustDo(await importText("m", { format: "json", input }, small));
      expect(again.stdout).to.equal("0 created, 0 replaced, 30 unchanged, 0 skipped\n");
    });

    it("shows its progress on a terminal", async function () {
      needs(this, spawnSync("script", ["--version"]).status === 0, "script(1)");
      const file = join(temporaryDirectory(), "many.json");
      writeFileSync(file, JSON.stringify(many));
      const command = `exec '${node}' '${mainFile}' import --format json --prefix shown '${file}'`;
      const env = environment({ STRONGROOM_HOME: server().home });
      const child = spawn("script", ["-qefc", command, "/dev/null"], {
        env,
        detached: true,
        stdio: ["ignore", "pipe", "inherit"],
      });
      later(() => void child.kill("SIGKILL"));
      const shown = await text(child.stdout);
      expect(shown).to.match(/\rimporting \[=* *\] \d+\/200/);
      expect(shown).to.contain("\r\u001b[K200 created, 0 replaced, 0 unchanged, 0 skipped\r\n"); // the bar is erased
    });

    it("stores the rest when a stored secret is damaged, names it, and exits 12", async () => {
      const damaged = await startLocalServer({ cacheBytes: 0 });
      await mustInit(damaged);
      await mustPut(damaged, "d/a", "v");
      writeFileSync(join(damaged.vaultPath, "gen-1/secrets/d/a.sealed"), "no blob");
      const { code, stderr } = await importText("d", { format: "json", input: { a: "1", b: "2" } }, damaged);
      expect(code).to.equal(12);
      expect(stderr).to.contain("not imported").and.contain("d/a");
      expect((await mustGet(damaged, "d/b"))["value"]).to.equal("2");
    });

    it("fails while the vault is locked, or without a server", async () => {
      const locked = await startLocalServer();
      await mustInit(locked);
      await mustLock(locked);
      const { code, stderr } = await importText("x", { format: "json", input: { a: "1" } }, locked);
      expect(code).to.equal(3);
      expect(stderr).to.contain("locked").and.contain("stopped after 0 of 1");
      const nowhere = await strongroom({ home: temporaryDirectory() }, ["import", "--format", "json", "-"], {
        input: "{}",
      });
      expect(nowhere.code).to.equal(10);
    });
  });
});
