/** Headers of each format version, frozen: every later version of the program must open them. */

/** Under the tests' passphrase, scrypt's cost 14. `keys`: texts that also open it. */
export type FrozenHeader = { readonly text: string; readonly keys: readonly string[] };

export const headerOfVersion1: FrozenHeader = {
  text: [
    '{"format":"strongroom","version":1,"vaultId":"abDXTqwym-d1jvcQUShvTg","createdAt":"2026-03-01T12:00:',
    '00.000Z","kdf":{"name":"scrypt","logN":14,"r":8,"p":1,"salt":"n0O6NdgaeP0QMXWPrj8Jaw"},"wrappedKey":',
    '"ovwbl8yb2yTvIHN3_8l-JJRekYW8T2mGlDjAnBohFA8","mac":"ndDhyQLpHX9KeN6V0ipln08J44qN2xuucYCG9dGURKo"}',
    "\n",
  ].join(""),
  keys: [],
};

export const headerOfVersion2: FrozenHeader = {
  text: [
    '{"format":"strongroom","version":2,"vaultId":"sTIQdvYewh6mJbDbnqj9AA","createdAt":"2026-11-22T05:50:',
    '32.191Z","slots":[{"kind":"passphrase","createdAt":"2026-11-22T05:50:32.191Z","kdf":{"name":"scrypt"',
    ',"logN":14,"r":8,"p":1,"salt":"h8gdczUTfnAcvFnE9rBC0w"},"wrappedKey":"Dt5hVU26_2aeKuCVyf3leBsdtUfTZd',
    'FSvLE77OlIibE","check":"tbiv8o8cn1dbBQLUkxvmIfUFCHRUcgy__p6pVbe-7AE"},{"kind":"key","id":"0bdd38mn",',
    '"label":"recovery","createdAt":"2026-11-22T05:50:32.573Z","salt":"-nmHnRi1DdcIDh8kTg5UlA","wrappedKe',
    'y":"VcM0JE5qc0qGKmNj-D3U5LyhSbjQnYECz1qaJtuJtEo","check":"uidLYwdsODqq0zQsh5lU5hrXZbyBIUTUxGHDjzTknf',
    '4"},{"kind":"key","id":"aq5b070n","label":"Büro \\"2\\" – 密码","createdAt":"2026-11-22T05:50:32.786Z","',
    'salt":"7m_fcC81VxT_Xs_Qk5c-DQ","wrappedKey":"P4TaPXuGVWhuHGtemMXReAgvvgeCmeTw5VHNmntbuGo","check":"W',
    'vCA-Iuq9nmUigERPrZtwA7yLztF_gQ5SC71wfCW5x8"}],"mac":"6bwBMET4BYBnU16fhI9H-7_gZ1FdWd4ENzaLjfo_dIY"}\n',
  ].join(""),
  keys: [
    "SRK-YCRW1-X2T9W-PVQVD-Z2NV5-8E9NW-PE1H4-BPHDG-Q3ET3-6XS8X-518PF-KC9N9-RHMKS-TDD0B",
    "SRK-2Y8BR-HEHVB-EZKDF-0DFWP-P0822-Q1894-BGCXP-VFJWT-87GMQ-Y05MT-K2Z8P-ATEEW-J58GY",
  ],
};
