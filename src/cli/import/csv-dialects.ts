/** The CSV that each program writes: its whole header, and what becomes of each column. */

export type Dialect = {
  /** The name for `--format`. */
  readonly format: string;
  readonly program: string;
  /** Columns that every version writes. */
  readonly needed: readonly string[];
  /** The column of each secret of a row. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly title: string;
  readonly group?: { readonly column: string; readonly separator: string | RegExp };
  readonly created?: string;
  /** Columns that say nothing about a login; those with values are listed. */
  readonly ignored: readonly string[];
};

/** `user`, `pass` and so on: the columns of the secrets that nearly every program has. */
function login(username: string, password: string, url: string, notes?: string, totp?: string) {
  return { username, password, url, ...(notes !== undefined && { notes }), ...(totp !== undefined && { totp }) };
}

/** Dialects in order: the first dialect that knows all columns of a file has written it. */
export const dialects: readonly Dialect[] = [
  {
    format: "keepassxc",
    program: "KeePassXC",
    needed: ["Group", "Title", "Password"],
    secrets: login("Username", "Password", "URL", "Notes", "TOTP"),
    title: "Title",
    group: { column: "Group", separator: "/" },
    created: "Created",
    ignored: ["Icon", "Last Modified"],
  },
  {
    format: "lastpass",
    program: "LastPass",
    needed: ["url", "username", "password", "name", "grouping"],
    secrets: login("username", "password", "url", "extra", "totp"),
    title: "name",
    group: { column: "grouping", separator: "\\" },
    ignored: ["fav"],
  },
  {
    format: "safari",
    program: "Safari",
    needed: ["Title", "URL", "Username", "Password", "OTPAuth"],
    secrets: login("Username", "Password", "URL", "Notes", "OTPAuth"),
    title: "Title",
    ignored: [],
  },
  {
    format: "1password-csv",
    program: "1Password",
    needed: ["Title", "Url", "Username", "Password", "OTPAuth"],
    secrets: { ...login("Username", "Password", "Url", "Notes", "OTPAuth"), tags: "Tags", archived: "Archived" },
    title: "Title",
    ignored: ["Favorite"],
  },
  {
    format: "bitwarden-csv",
    program: "Bitwarden",
    needed: ["type", "name", "login_uri", "login_username", "login_password", "login_totp"],
    secrets: { ...login("login_username", "login_password", "login_uri", "notes", "login_totp"), fields: "fields" },
    title: "name",
    group: { column: "folder", separator: "/" },
    ignored: ["favorite", "type", "reprompt", "archivedDate"],
  },
  {
    format: "bitwarden-org-csv",
    program: "Bitwarden for an organization",
    needed: ["collections", "type", "name", "login_uri", "login_username", "login_password", "login_totp"],
    secrets: { ...login("login_username", "login_password", "login_uri", "notes", "login_totp"), fields: "fields" },
    title: "name",
    group: { column: "collections", separator: "/" },
    ignored: ["type", "reprompt"],
  },
  {
    format: "proton",
    program: "Proton Pass",
    needed: ["type", "name", "url", "email", "username", "password", "note", "totp"],
    secrets: { ...login("username", "password", "url", "note", "totp"), email: "email" },
    title: "name",
    group: { column: "vault", separator: "/" },
    created: "createTime",
    ignored: ["type", "modifyTime"],
  },
  {
    format: "dashlane",
    program: "Dashlane",
    needed: ["username", "username2", "username3", "title", "password", "note", "url"],
    secrets: {
      ...login("username", "password", "url", "note", "otpSecret"),
      ...{ "username-2": "username2", "username-3": "username3", "totp/url": "otpUrl" },
    },
    title: "title",
    group: { column: "category", separator: "/" },
    ignored: [],
  },
  {
    format: "nordpass",
    program: "NordPass",
    needed: ["name", "url", "username", "password", "note", "cardholdername", "cardnumber", "cvc", "folder"],
    secrets: {
      ...login("username", "password", "url", "note"),
      ...{ "card/holder": "cardholdername", "card/number": "cardnumber", "card/code": "cvc", "card/pin": "pin" },
      ...{ "card/expiry": "expirydate", "zip-code": "zipcode", "full-name": "full_name", phone: "phone_number" },
      ...{ email: "email", "address-1": "address1", "address-2": "address2", city: "city", country: "country" },
      ...{ state: "state", urls: "additional_urls", fields: "custom_fields" },
    },
    title: "name",
    group: { column: "folder", separator: "/" },
    ignored: ["type"],
  },
  {
    format: "myki",
    program: "MYKI",
    needed: ["url", "username", "password", "additionalInfo", "nickname", "twofaSecret"],
    secrets: login("username", "password", "url", "additionalInfo", "twofaSecret"),
    title: "nickname",
    ignored: [],
  },
  {
    format: "saferpass",
    program: "SaferPass",
    needed: ["modelType", "modelVersion", "url", "username", "password", "notes", "title"],
    secrets: { ...login("username", "password", "url", "notes"), text: "text" },
    title: "title",
    ignored: ["modelType", "modelVersion", "favorite", "color"],
  },
  {
    format: "padlock",
    program: "Padlock",
    needed: ["name", "tags", "url", "username", "password", "notes"],
    secrets: login("username", "password", "url", "notes"),
    title: "name",
    group: { column: "tags", separator: /[\\/]/ },
    ignored: [],
  },
  {
    format: "safeincloud",
    program: "SafeInCloud",
    needed: ["Title", "Login", "Password", "URL", "Notes", "OTP"],
    secrets: login("Login", "Password", "URL", "Notes", "OTP"),
    title: "Title",
    ignored: [],
  },
  {
    format: "synology",
    program: "Synology C2",
    needed: ["Display_Name", "Login_Username", "Login_Password", "Login_URLs", "Login_TOTP"],
    secrets: login("Login_Username", "Login_Password", "Login_URLs", "Notes", "Login_TOTP"),
    title: "Display_Name",
    ignored: ["Favorite"],
  },
  {
    format: "gorilla",
    program: "Password Gorilla",
    needed: ["uuid", "group", "title", "url", "user", "password", "notes"],
    secrets: login("user", "password", "url", "notes"),
    title: "title",
    group: { column: "group", separator: "." },
    ignored: ["uuid"],
  },
  {
    format: "keepass-csv",
    program: "KeePass 1",
    needed: ["Account", "Login Name", "Password", "Web Site", "Comments"],
    secrets: login("Login Name", "Password", "Web Site", "Comments"),
    title: "Account",
    ignored: [],
  },
  {
    format: "browser",
    program: "a browser",
    needed: ["url", "username", "password"],
    secrets: { ...login("username", "password", "url", "note"), "http-realm": "httpRealm" },
    title: "name",
    ignored: ["formActionOrigin", "guid", "timeCreated", "timeLastUsed", "timePasswordChanged"],
  },
];

/** All columns that a dialect knows. */
export function knownColumns({ secrets, needed, ignored, title, group, created }: Dialect): ReadonlySet<string> {
  const others = [title, group?.column, created].filter((name) => name !== undefined);
  return new Set([...needed, ...Object.values(secrets), ...others, ...ignored]);
}

/**
 * Names of KeePassXC's recycle bin in the languages of its translations: its CSV has no other mark of the group, which is a
 * top one.
 */
export const recycleBins: ReadonlySet<string> = new Set([
  ...[
    "Recycle Bin",
    "Papierkorb",
    "Corbeille",
    "Papelera",
    "Papelera de reciclaje",
    "Cestino",
    "Prullenbak",
    "Kosz",
    "Koš",
  ],
  ...["Kôš", "Koš za smeće", "Lixeira", "Reciclagem", "Papperskorg", "Papperskorgen", "Papirkurv", "Papirkurven"],
  ...[
    "Roskakori",
    "Prügikast",
    "Šiukšlinė",
    "Šiukšliadėžė",
    "Kuka",
    "Lomtár",
    "Coș de gunoi",
    "Coș de reciclare",
    "Paperera",
  ],
  ...["Kosh Hedhurinash", "Çöp kutusu", "Geri Dönüşüm Kutusu", "Keranjang Sampah", "Tong Sampah", "Κάδος Ανακύκλωσης"],
  ...[
    "Корзина",
    "Кошик",
    "Смітник",
    "Кошче",
    "Корпа за отпатке",
    "סל־מחזור",
    "סל מיחזור",
    "سلة المهملات",
    "سلة المحذوفات",
  ],
  ...[
    "ゴミ箱",
    "ごみ箱",
    "回收站",
    "回收桶",
    "資源回收桶",
    "垃圾桶",
    "휴지통",
    "ถังขยะ",
    "အမှိုက်ပုံး",
    "ធុងសំរាម",
    "ප්‍රතිචක්‍රීකරණ බඳුන",
  ],
]);
