/** Long forms of the tests: their files and their numbers. */

export type LongForm = {
  readonly meaning: string;
  /** Below test/, without the extension: tests for mocha, or one program. */
  readonly files: readonly string[];
  /** Environment variables that the files read. */
  readonly numbers?: Readonly<Record<string, string>>;
};

export const longForms: Readonly<Record<string, LongForm>> = {
  kills: {
    meaning:
      "kills a server again and again under all kinds of changes, batches, trash, keys, tokens and bindings included, and compares it with a model; its log is whole",
    files: ["durability/kills.test"],
    numbers: { STRONGROOM_KILLS: "400", STRONGROOM_KILL_CHANGES: "50000" },
  },
  partitions: {
    meaning:
      "cuts three servers off from their database at random, and checks 500 histories for one order of operations",
    files: ["durability/partitions.test"],
    numbers: { STRONGROOM_PARTITIONS: "500" },
  },
  power: {
    meaning: "cuts the power under the same changes of one client and of six (Linux, root, loop devices)",
    files: ["durability/power-cut.test"],
    numbers: { STRONGROOM_CUTS: "40" },
  },
  claim: {
    meaning: "starts 20 servers at once on one vault",
    files: ["durability/claim.test"],
    numbers: { STRONGROOM_CLAIM_ROUNDS: "100" },
  },
  pair: {
    meaning: "starts a server on 200 pairs of a damaged certificate or key",
    files: ["server/certificate-pair.test"],
    numbers: { STRONGROOM_PAIR_FLIPS: "200" },
  },
  "lost-replies": {
    meaning:
      "file operations report errors before or after their effect, in every kind of change and in 500 different random ones, on a disk that loses what was not synced",
    files: ["storage/lost-replies.test"],
    numbers: { STRONGROOM_LOST_REPLIES: "1", STRONGROOM_LOST_CASES: "500" },
  },
  "hostile-rows": {
    meaning:
      "edits rows of a database by hand, 3,000 times at random and some to hundreds of megabytes, under a server",
    files: ["storage/postgres/hostile-rows.process.test", "contract/damaged-rows.process.test"],
    numbers: { STRONGROOM_HOSTILE_EDITS: "3000", STRONGROOM_HOSTILE_HUGE: "1", STRONGROOM_DAMAGED_ROWS: "1" },
  },
  linearizability: {
    meaning: "checks histories of 8 concurrent clients, with conditions, the trash and batches",
    files: ["durability/linearizability.test"],
    numbers: { STRONGROOM_HISTORIES: "10000" },
  },
  postgres: {
    meaning: "kills the database and cuts its connections under three servers, and checks what their clients see",
    files: [
      "storage/postgres/postgres-contract.process.test",
      "storage/postgres/several-servers.process.test",
      "storage/postgres/database-failures.process.test",
      "durability/linearizability.test",
      "durability/kills.test",
      "durability/vault-model.test",
    ],
    numbers: {
      STRONGROOM_KILLS: "1",
      STRONGROOM_KILL_CHANGES: "10",
      STRONGROOM_SHARED_KILLS: "200",
      STRONGROOM_MODEL_RUNS: "100",
      STRONGROOM_DATABASE_FAULTS: "50",
      STRONGROOM_UPDATES: "30",
      STRONGROOM_HISTORIES: "0",
      STRONGROOM_SHARED_HISTORIES: "10000",
    },
  },
  history: {
    meaning: "compares 1,000 random histories with a model, and lets 16 writers race for each of 10,000 tags",
    files: ["properties/history-model.test", "http/conditions.test"],
    numbers: { STRONGROOM_HISTORY_RUNS: "1000", STRONGROOM_TAG_ROUNDS: "10000" },
  },
  binary: {
    meaning: "takes 1,000 binary values through all that stores, moves or copies secrets, and compares each byte",
    files: ["properties/binary-values.test"],
    numbers: { STRONGROOM_BINARY_VALUES: "1000" },
  },
  fuzz: {
    meaning: "sends 10,000 generated requests and 1,000 malformed ones; 100,000 random pairs of paths; JSON texts",
    files: ["properties/fuzz.test", "paths/codec.test", "workers/json.test"],
    numbers: {
      STRONGROOM_FUZZ_REQUESTS: "10000",
      STRONGROOM_FUZZ_PIECES: "1000",
      STRONGROOM_PATH_PAIRS: "100000",
      STRONGROOM_JSON_TEXTS: "50000",
    },
  },
  tokens: {
    meaning: "100,000 random lists of the paths of client tokens",
    files: ["properties/token-paths.test"],
    numbers: { STRONGROOM_TOKEN_LISTS: "100000" },
  },
  audit: {
    meaning: "10,000 manipulations of an audit log, 10,000 rounds of its attacker's game, a full disk for a minute",
    files: ["audit/manipulations.test", "audit/game.test", "audit/full-disk.test"],
    numbers: {
      STRONGROOM_AUDIT_MANIPULATIONS: "10000",
      STRONGROOM_AUDIT_GAME: "10000",
      STRONGROOM_AUDIT_FULL_MS: "60000",
    },
  },
  isolation: {
    meaning:
      "searches the server's memory after 20 rounds, 100 crashes, 10,000 checked secrets and 200 requests of each kind (Linux)",
    files: ["isolation/memory.test", "isolation/memory-values.test", "isolation/proof.test", "isolation/rules.test"],
    numbers: {
      STRONGROOM_ROUNDS: "20",
      STRONGROOM_CRASHES: "100",
      STRONGROOM_PUTS: "200",
      STRONGROOM_GETS: "200",
      STRONGROOM_CHECKED_SECRETS: "10000",
      STRONGROOM_BROKER_REQUESTS: "200",
    },
  },
  keyring: {
    meaning:
      "50 clients of the keyring beside a model, 100 kills of it and of its server, a search of both for 600 values (Linux)",
    files: ["extras/keyring/model.test", "extras/keyring/values-in-memory.process.test"],
    numbers: {
      STRONGROOM_KEYRING_CLIENTS: "50",
      STRONGROOM_KEYRING_OPERATIONS: "2000",
      STRONGROOM_KEYRING_KILLS: "100",
      STRONGROOM_KEYRING_VALUES: "200",
    },
  },
  prove: {
    meaning:
      "20 rounds of strongroom prove on a busy server, with dumps that tools/prove.py judges too, and 100 runs without a false alarm",
    files: ["prove/prove.test"],
    numbers: { STRONGROOM_PROVE_ROUNDS: "20", STRONGROOM_PROVE_RUNS: "100" },
  },
  rights: {
    meaning: "10,000 random requests of transit keys, none of which may show a private part",
    files: ["transit/rights.slow.test"],
    numbers: { STRONGROOM_TRANSIT_REQUESTS: "10000" },
  },
  broker: {
    meaning: "all 4,800 requests of the broker's matrix; kills a server 200 times while a refresh token is rotated",
    files: ["broker/matrix.test", "durability/refresh-kills.test"],
    numbers: { STRONGROOM_BROKER_MATRIX: "4800", STRONGROOM_REFRESH_KILLS: "200" },
  },
  agents: {
    meaning:
      "installs SDKs and strongroom mcp and runs them, gh, Go's programs and streams of 1 GB through the broker (network)",
    files: ["broker/clients.process.test", "docs/other-users.process.test"],
    numbers: { STRONGROOM_CLIENTS: "1" },
  },
  vectors: {
    meaning:
      "runs the long cipher vectors, 500 random models, every flipped bit of headers and blobs, every fault of the store",
    files: [
      "workers/crypto-vectors.test",
      "durability/vault-model.test",
      "vault/damaged-header.slow.test",
      "vault/damaged-blob.slow.test",
      "storage/store-contract.slow.test",
    ],
    numbers: { STRONGROOM_SLOW: "1", STRONGROOM_MODEL_RUNS: "500" },
  },
  torture: {
    meaning: "hostile disks, limits, kills, power cuts and formats, see docs/inside/torture.md (Linux, root)",
    files: [
      "torture/processes.test",
      "torture/disks.test",
      "torture/kills.test",
      "torture/formats.test",
      "torture/deep-paths.test",
      "durability/power-cut-commands.test",
    ],
    numbers: {
      STRONGROOM_TORTURE: "1",
      STRONGROOM_STOPPED_MS: "30000",
      STRONGROOM_TORTURE_KILLS: "20",
      STRONGROOM_COMMAND_CUTS: "20",
    },
  },
  stranger: {
    meaning:
      "a stranger's first hour on a terminal of 80 x 24: install, first secret, import, run, browse, tokens, service, backup (tmux, network)",
    files: ["cli/strangers-hour.test", "cli/watch.test", "isolation/demonstration.test"],
    numbers: { STRONGROOM_STRANGER: "1" },
  },
  imports: {
    meaning:
      "imports the sample files of ten other projects (network), 1,000 random files of each format, and has the parsers of other programs read what export writes (network)",
    files: [
      "cli/import-samples.test",
      "cli/import-properties.test",
      "cli/import-keepassxc.test",
      "cli/export-readers.test",
    ],
    numbers: {
      STRONGROOM_SAMPLES: "https://raw.githubusercontent.com",
      STRONGROOM_IMPORT_RUNS: "1000",
      STRONGROOM_READERS: "1",
    },
  },
  extras: {
    meaning: "removes each extra from a copy of the source, which must build and pass the rules of its architecture",
    files: ["extras/removal.test"],
    numbers: { STRONGROOM_REMOVE_EXTRAS: "1" },
  },
  release: {
    meaning: "builds the packages of a release twice, compares them, and runs the program (Linux, x64, network)",
    files: ["docs/release.test"],
    numbers: { STRONGROOM_RELEASE: "1" },
  },
  install: {
    meaning:
      "installs a release's packages in a fresh Debian, see test/docs/install.test.ts (Linux, x64, root, network)",
    files: ["docs/install.test"],
  },
  program: {
    meaning: "runs the installed program in the directory STRONGROOM_PROGRAM through the tests of commands and servers",
    files: [
      "cli/**/*.test",
      "extras/**/*.test",
      "server/*.test",
      "client/*.process.test",
      "http/*.process.test",
      "isolation/*.test",
      "prove/*.test",
      "maintenance/*.test",
      "torture/processes.test",
    ],
  },
  soak: {
    meaning: "watches memory, descriptors and handles of a server under full load, in minutes",
    files: ["durability/soak"],
    numbers: { STRONGROOM_SOAK_MINUTES: "15" },
  },
  nodes: {
    meaning: "runs all tests on each supported Node (Linux, x64): nodes 20 22 24",
    files: ["long/nodes"],
  },
};
