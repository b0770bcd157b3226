/** Shapes of the API's responses and its error codes, generated from openapi.yaml by `npm run contract`. */
import type {
  Acknowledgement,
  Agent,
  ApprovalList,
  AuditPage,
  AuditVerdicts,
  BatchResults,
  BrokerAccess,
  CheckList,
  CiphertextResult,
  CreatedKey,
  DataKey,
  Deleted,
  ExportedTransitKey,
  FileKeyResult,
  HmacResult,
  Initialized,
  KeyList,
  LoggedIn,
  NewToken,
  OneTimeCode,
  PlaintextResult,
  RandomBytes,
  ReviewCode,
  ReviewFacts,
  ReviewStorm,
  ReviewToken,
  Revoked,
  Rotated,
  Secret,
  SecretHistory,
  SecretList,
  SignatureResult,
  Snapshot,
  Stored,
  Token,
  TokenList,
  TransitDeleted,
  TransitKey,
  TransitKeyList,
  Trashed,
  TrashList,
  UseList,
  UseSet,
  ValidityResult,
  VaultStatus,
} from "./api-types.js";

/** The responses by the names of their shapes. */
export type Responses = {
  readonly Acknowledgement: Acknowledgement;
  readonly Agent: Agent;
  readonly ApprovalList: ApprovalList;
  readonly AuditPage: AuditPage;
  readonly AuditVerdicts: AuditVerdicts;
  readonly BatchResults: BatchResults;
  readonly BrokerAccess: BrokerAccess;
  readonly CheckList: CheckList;
  readonly CiphertextResult: CiphertextResult;
  readonly CreatedKey: CreatedKey;
  readonly DataKey: DataKey;
  readonly Deleted: Deleted;
  readonly ExportedTransitKey: ExportedTransitKey;
  readonly FileKeyResult: FileKeyResult;
  readonly HmacResult: HmacResult;
  readonly Initialized: Initialized;
  readonly KeyList: KeyList;
  readonly LoggedIn: LoggedIn;
  readonly NewToken: NewToken;
  readonly OneTimeCode: OneTimeCode;
  readonly PlaintextResult: PlaintextResult;
  readonly RandomBytes: RandomBytes;
  readonly ReviewCode: ReviewCode;
  readonly ReviewFacts: ReviewFacts;
  readonly ReviewStorm: ReviewStorm;
  readonly ReviewToken: ReviewToken;
  readonly Revoked: Revoked;
  readonly Rotated: Rotated;
  readonly Secret: Secret;
  readonly SecretHistory: SecretHistory;
  readonly SecretList: SecretList;
  readonly SignatureResult: SignatureResult;
  readonly Snapshot: Snapshot;
  readonly Stored: Stored;
  readonly Token: Token;
  readonly TokenList: TokenList;
  readonly TransitDeleted: TransitDeleted;
  readonly TransitKey: TransitKey;
  readonly TransitKeyList: TransitKeyList;
  readonly Trashed: Trashed;
  readonly TrashList: TrashList;
  readonly UseList: UseList;
  readonly UseSet: UseSet;
  readonly ValidityResult: ValidityResult;
  readonly VaultStatus: VaultStatus;
};

/** A question mark stands behind the names of members that may be missing. */
export const shapes = {
  Acknowledgement: {
    ok: "boolean",
    message: "string",
  },
  Agent: {
    port: "integer",
    certificate: "string",
    uses: "[]BrokerUse",
    ok: "boolean",
    token: "string",
    name: "string",
    can: "[]string",
    paths: "[]string",
    createdAt: "time",
    expiresAt: "time|null",
    lastUsedAt: "time|null",
  },
  Approval: {
    id: "string",
    token: "string",
    path: "string",
    method: "string",
    scheme: "string",
    host: "string",
    port: "integer",
    target: "string",
    query: "string|QueryDigest",
    program: "Program|null",
    since: "time",
  },
  ApprovalList: {
    approvals: "[]Approval",
    "passphrase?": "boolean",
  },
  AuditCheck: {
    records: "integer",
    firstSeq: "integer",
    covered: "integer",
    problemCount: "integer",
    problems: "[]string",
  },
  AuditHead: {
    log: "string",
    seq: "integer",
    chain: "string",
  },
  AuditPage: {
    records: "[]AuditRecord",
    "head?": "AuditHead",
  },
  AuditRecord: {
    seq: "integer",
    time: "time",
    event: "string",
    "token?": "string",
    "address?": "string",
    "requestId?": "string",
    "path?": "string",
    "to?": "string",
    "name?": "string",
    "kind?": "string",
    "label?": "string",
    "version?": "integer",
    "etag?": "string",
    "prefix?": "string",
    "count?": "integer",
    "batch?": "boolean",
    "status?": "integer",
    "code?": "string",
    "reason?": "string",
    "from?": "integer",
    "credential?": "string",
    "host?": "string",
    "method?": "string",
    "since?": "time",
    "key?": "string",
    "mac?": "string",
  },
  AuditVerdicts: {
    verdicts: "[]string",
  },
  BatchRefusal: {
    code: "string",
    error: "string",
  },
  BatchResults: {
    ok: "boolean",
    results: "[]Secret|Stored|Deleted|BatchRefusal",
  },
  BreachDigest: {
    prefix: "string",
    digest: "string",
  },
  BrokerAccess: {
    port: "integer",
    certificate: "string",
    uses: "[]BrokerUse",
  },
  BrokerUse: {
    host: "string",
    port: "integer",
    header: "string",
    name: "string|null",
  },
  CheckEntry: {
    path: "string",
    bytes: "integer",
    "score?": "integer",
    "form?": "string",
    "reuse?": "string",
    "search?": "[]SearchDigest",
    "breach?": "BreachDigest",
  },
  CheckList: {
    entries: "[]CheckEntry",
    "next?": "string",
    "damaged?": "[]string",
  },
  CiphertextResult: {
    "ciphertext?": "string",
    "results?": "[]TransitResult",
  },
  CreatedKey: {
    ok: "boolean",
    id: "string",
    label: "string",
    key: "string",
  },
  DataKey: {
    "ciphertext?": "string",
    "plaintext?": "string",
    "results?": "[]TransitResult",
  },
  Deleted: {
    ok: "boolean",
    path: "string",
    message: "string",
  },
  ExportedTransitKey: {
    name: "string",
    type: "string",
    keys: "{}string",
  },
  FileKeyResult: {
    "fileKey?": "string",
    "results?": "[]TransitResult",
  },
  GithubApp: {
    appId: "string",
    installation: "string",
    "api?": "string",
  },
  HmacResult: {
    "hmac?": "string",
    "results?": "[]TransitResult",
  },
  Initialized: {
    ok: "boolean",
    message: "string",
    vaultPath: "string",
  },
  Key: {
    id: "string",
    kind: "string",
    label: "string",
    createdAt: "time",
  },
  KeyHolders: {
    frontEnd: "integer",
    keyWorker: "integer",
  },
  KeyList: {
    keys: "[]Key",
  },
  LastLock: {
    reason: "string",
    at: "time",
  },
  LastProve: {
    at: "time",
    verdict: "string",
    checks: "integer",
    failed: "integer",
  },
  LoggedIn: {
    ok: "boolean",
    path: "string",
    state: "string",
  },
  Metadata: {
    "type?": "string",
    "description?": "string",
    "expiresAt?": "time",
    "custom?": "{}string",
  },
  NewToken: {
    ok: "boolean",
    token: "string",
    name: "string",
    can: "[]string",
    paths: "[]string",
    createdAt: "time|null",
    expiresAt: "time|null",
    lastUsedAt: "time|null",
  },
  OAuth: {
    tokenUrl: "string",
    clientId: "string",
    "scope?": "string",
  },
  OneTimeCode: {
    path: "string",
    code: "string",
    validFor: "integer",
    period: "integer",
    isUrl: "boolean",
  },
  PlaintextResult: {
    "plaintext?": "string",
    "results?": "[]TransitResult",
  },
  Program: {
    pid: "integer",
    name: "string",
  },
  ProgramFile: {
    name: "string",
    sha256: "string",
  },
  QueryDigest: {
    length: "integer",
    sha256: "string",
  },
  RandomBytes: {
    random: "string",
  },
  ReviewCode: {
    ok: "boolean",
    code: "string",
    expiresInSeconds: "integer",
    url: "string",
  },
  ReviewFacts: {
    version: "string",
    node: "string",
    keys: "KeyHolders",
    slots: "[]ReviewSlot",
    tokens: "[]Token",
    weaknesses: "[]string",
    lastProve: "LastProve|null",
    audit: "AuditCheck|null",
    files: "[]ProgramFile",
  },
  ReviewSlot: {
    id: "string",
    kind: "string",
    label: "string",
    createdAt: "time",
    cost: "string",
  },
  ReviewStorm: {
    ok: "boolean",
    unlocks: "integer",
    durationMs: "integer",
    gets: "integer",
    getP99: "number|null",
    bareP99: "number|null",
  },
  ReviewToken: {
    ok: "boolean",
    token: "string",
    expiresAt: "time",
  },
  Revoked: {
    ok: "boolean",
    name: "string",
    message: "string",
  },
  Rotated: {
    ok: "boolean",
    message: "string",
    removed: "[]string",
  },
  RotationProgress: {
    done: "integer",
    total: "integer",
  },
  SearchDigest: {
    bytes: "integer",
    start: "integer",
    digest: "string",
  },
  Secret: {
    path: "string",
    value: "string",
    "encoding?": "string",
    metadata: "Metadata",
    createdAt: "time",
    updatedAt: "time",
    version: "integer",
    etag: "string",
  },
  SecretEntry: {
    path: "string",
    "encoding?": "string",
    metadata: "Metadata",
    createdAt: "time",
    updatedAt: "time",
    version: "integer",
    etag: "string",
  },
  SecretHistory: {
    path: "string",
    versions: "[]SecretVersion",
    "damaged?": "integer",
  },
  SecretList: {
    entries: "[]SecretEntry",
    "next?": "string",
    "damaged?": "[]string",
  },
  SecretVersion: {
    "deletedAt?": "time",
    "destroyed?": "boolean",
    "encoding?": "string",
    metadata: "Metadata",
    createdAt: "time",
    updatedAt: "time",
    version: "integer",
    etag: "string",
  },
  ServerCertificate: {
    endsAt: "time",
  },
  SigV4: {
    service: "string",
    region: "string",
  },
  SignatureResult: {
    "signature?": "string",
    "results?": "[]TransitResult",
  },
  Snapshot: {
    ok: "boolean",
    message: "string",
    directory: "string",
    secretCount: "integer",
    "direct?": "boolean",
  },
  Stored: {
    ok: "boolean",
    path: "string",
    bytes: "integer",
    metadata: "Metadata",
    version: "integer",
    etag: "string",
  },
  Token: {
    name: "string",
    can: "[]string",
    paths: "[]string",
    createdAt: "time|null",
    expiresAt: "time|null",
    lastUsedAt: "time|null",
    "parent?": "string",
  },
  TokenList: {
    tokens: "[]Token",
  },
  TransitDeleted: {
    ok: "boolean",
    name: "string",
    message: "string",
  },
  TransitKey: {
    name: "string",
    type: "string",
    latestVersion: "integer",
    minDecryptionVersion: "integer",
    exportable: "boolean",
    deletionAllowed: "boolean",
    versions: "{}TransitKeyVersion",
  },
  TransitKeyEntry: {
    name: "string",
    type: "string",
    latestVersion: "integer",
  },
  TransitKeyList: {
    keys: "[]TransitKeyEntry",
    "damaged?": "[]string",
  },
  TransitKeyVersion: {
    createdAt: "time",
    "publicKey?": "string",
  },
  TransitResult: {
    "ciphertext?": "string",
    "plaintext?": "string",
    "signature?": "string",
    "fileKey?": "string",
    "hmac?": "string",
    "valid?": "boolean",
    "error?": "string",
    "code?": "string",
  },
  TrashEntry: {
    path: "string",
    deletedAt: "time",
    "encoding?": "string",
    metadata: "Metadata",
    createdAt: "time",
    updatedAt: "time",
    version: "integer",
    etag: "string",
  },
  TrashList: {
    entries: "[]TrashEntry",
    "next?": "string",
    "damaged?": "[]string",
  },
  Trashed: {
    ok: "boolean",
    path: "string",
    message: "string",
    deletedAt: "time",
  },
  Use: {
    path: "string",
    host: "string",
    port: "integer",
    header: "string",
    "format?": "string",
    "basic?": "string",
    "methods?": "[]string",
    "paths?": "[]string",
    ask: "string",
    private: "boolean",
    "githubApp?": "GithubApp",
    "oauth?": "OAuth",
    "sigv4?": "SigV4",
    "name?": "string",
  },
  UseList: {
    uses: "[]Use",
  },
  UseSet: {
    ok: "boolean",
    path: "string",
    host: "string",
    port: "integer",
    header: "string",
    "format?": "string",
    "basic?": "string",
    "methods?": "[]string",
    "paths?": "[]string",
    ask: "string",
    private: "boolean",
    "githubApp?": "GithubApp",
    "oauth?": "OAuth",
    "sigv4?": "SigV4",
    "name?": "string",
  },
  ValidityResult: {
    "valid?": "boolean",
    "results?": "[]TransitResult",
  },
  VaultStatus: {
    initialized: "boolean",
    locked: "boolean",
    secretCount: "integer",
    vaultPath: "string",
    serverRunning: "boolean",
    port: "integer",
    "vaultPort?": "integer",
    "brokerPort?": "integer",
    "reauthorize?": "[]string",
    "certificate?": "ServerCertificate",
    idleTimeoutMs: "integer",
    lastActivity: "time",
    lastLock: "LastLock",
    version: "string",
    "changes?": "integer",
    "rotation?": "RotationProgress",
    "storageAvailable?": "boolean",
    "storageProblem?": "string",
  },
};

export const errorCodes: readonly string[] = [
  "BAD_REQUEST",
  "UNAUTHORIZED",
  "FORBIDDEN",
  "VAULT_LOCKED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PRECONDITION_FAILED",
  "RATE_LIMITED",
  "INTERNAL",
  "INTEGRITY",
  "UNAVAILABLE",
];
