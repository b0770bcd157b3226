/** Types of the HTTP API, generated from openapi.yaml by `npm run contract`. */

/** Body of init. */
export interface InitRequest {
  /** The vault's passphrase. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** Replace an existing vault with a new, empty one. The old one is kept beside it. */
  readonly force?: boolean;
}

/** Body of unlock. */
export interface UnlockRequest {
  /** The vault's passphrase or one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
}

/** Body of a change of the passphrase. */
export interface PassphraseRequest {
  /** The vault's passphrase or one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** The new passphrase. At most 1024 bytes of UTF-8. */
  readonly newPassphrase: string;
}

/** Body of a rotation of the master key. */
export interface RotateRequest {
  /** The vault's passphrase. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** The keys to keep. The others no longer unlock the vault. */
  readonly keys: readonly string[];
}

/** Body of a new key. */
export interface KeyRequest {
  /** The vault's passphrase or one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** Unique name of the key, without control characters or leading or trailing white space. At most 64 bytes of UTF-8. */
  readonly label: string;
}

/** Body of undo. */
export interface UndoRequest {
  /** Number of a stored version. */
  readonly version: number;
}

/** Body of a check of checkpoints. */
export interface AuditVerifyRequest {
  /** The checkpoints to check. */
  readonly checkpoints: readonly AuditCheckpoint[];
}

/** Body of a new transit key. Other fields are ignored. */
export interface TransitKeyRequest {
  /** Algorithm of the key, which decides its operations. */
  readonly type?: "aes256-gcm96" | "ed25519" | "ecdsa-p256" | "x25519" | "rsa-2048" | "rsa-4096" | "hmac";
  /** Whether the root token may export the private part. This cannot be changed later. */
  readonly exportable?: boolean;
  /** An existing key to import, in base64: PKCS #8 in DER of an asymmetric key, otherwise the key's bytes. Default: a new, random key. */
  readonly key?: string;
}

/** Body of a new version of a transit key. Other fields are ignored. */
export interface TransitVersionRequest {
  /** An existing key to import, as for a new transit key. Default: a new, random key. */
  readonly key?: string;
}

/** Body of a change of a transit key's settings. Omitted settings stay. Other fields are ignored. */
export interface TransitConfigRequest {
  /** The lowest version that decrypts and verifies. */
  readonly minDecryptionVersion?: number;
  /** Whether the key can be deleted. What it encrypted is lost then. */
  readonly deletionAllowed?: boolean;
}

/** One input of a transit key. Which fields it needs depends on the operation. Other fields are ignored. */
export interface TransitInput {
  /** encrypt: the bytes to encrypt, in base64. */
  readonly plaintext?: string;
  /** decrypt, rewrap: what encrypt returned. */
  readonly ciphertext?: string;
  /** Additional data that is authenticated but not encrypted, in base64; decrypt needs the same. Only with `aes256-gcm96`. */
  readonly aad?: string;
  /** sign, verify, hmac: the message, or with `prehashed` its digest, in base64. */
  readonly input?: string;
  /** verify: what sign returned. */
  readonly signature?: string;
  /** verify: what hmac returned, in place of `signature`. */
  readonly hmac?: string;
  /** sign, verify: `input` is a digest already. Not with `ed25519`. */
  readonly prehashed?: boolean;
  /** sign, verify, hmac: the hash function. `ed25519` ignores it. */
  readonly hash?: "sha2-256" | "sha2-384" | "sha2-512";
  /** sign, verify with `ecdsa-p256`: DER, or r and s in base64url. */
  readonly marshaling?: "asn1" | "jws";
  /** sign, verify with RSA: the padding. */
  readonly signatureAlgorithm?: "pss" | "pkcs1v15";
  /** sign, hmac: the version to use. Default: the newest. */
  readonly keyVersion?: number;
  /** unwrap: the ephemeral share of an X25519 stanza of age, 32 bytes in base64. */
  readonly share?: string;
  /** unwrap: the body of the stanza, 32 bytes in base64. */
  readonly wrapped?: string;
}

/** Body of an encryption; one input, or a batch of them. Other fields are ignored. */
export interface EncryptRequest {
  /** encrypt: the bytes to encrypt, in base64. */
  readonly plaintext?: string;
  /** Additional data that is authenticated but not encrypted, in base64; decrypt needs the same. Only with `aes256-gcm96`. */
  readonly aad?: string;
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** Body of a decryption or rewrap; one input, or a batch of them. Other fields are ignored. */
export interface CiphertextRequest {
  /** decrypt, rewrap: what encrypt returned. */
  readonly ciphertext?: string;
  /** Additional data that is authenticated but not encrypted, in base64; decrypt needs the same. Only with `aes256-gcm96`. */
  readonly aad?: string;
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** An X25519 stanza of an age file; one, or a batch of them. Other fields are ignored. */
export interface UnwrapRequest {
  /** unwrap: the ephemeral share of an X25519 stanza of age, 32 bytes in base64. */
  readonly share?: string;
  /** unwrap: the body of the stanza, 32 bytes in base64. */
  readonly wrapped?: string;
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** Body of a request for a signature; one input, or a batch of them. Other fields are ignored. */
export interface SignRequest {
  /** sign, verify, hmac: the message, or with `prehashed` its digest, in base64. */
  readonly input?: string;
  /** sign, verify: `input` is a digest already. Not with `ed25519`. */
  readonly prehashed?: boolean;
  /** sign, verify, hmac: the hash function. `ed25519` ignores it. */
  readonly hash?: "sha2-256" | "sha2-384" | "sha2-512";
  /** sign, verify with `ecdsa-p256`: DER, or r and s in base64url. */
  readonly marshaling?: "asn1" | "jws";
  /** sign, verify with RSA: the padding. */
  readonly signatureAlgorithm?: "pss" | "pkcs1v15";
  /** sign, hmac: the version to use. Default: the newest. */
  readonly keyVersion?: number;
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** Body of a verification; one input, or a batch of them. Other fields are ignored. */
export interface VerifyRequest {
  /** sign, verify, hmac: the message, or with `prehashed` its digest, in base64. */
  readonly input?: string;
  /** verify: what sign returned. */
  readonly signature?: string;
  /** verify: what hmac returned, in place of `signature`. */
  readonly hmac?: string;
  /** sign, verify: `input` is a digest already. Not with `ed25519`. */
  readonly prehashed?: boolean;
  /** sign, verify, hmac: the hash function. `ed25519` ignores it. */
  readonly hash?: "sha2-256" | "sha2-384" | "sha2-512";
  /** sign, verify with `ecdsa-p256`: DER, or r and s in base64url. */
  readonly marshaling?: "asn1" | "jws";
  /** sign, verify with RSA: the padding. */
  readonly signatureAlgorithm?: "pss" | "pkcs1v15";
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** Body of a request for a MAC; one input, or a batch of them. Other fields are ignored. */
export interface HmacRequest {
  /** sign, verify, hmac: the message, or with `prehashed` its digest, in base64. */
  readonly input?: string;
  /** sign, verify, hmac: the hash function. `ed25519` ignores it. */
  readonly hash?: "sha2-256" | "sha2-384" | "sha2-512";
  /** sign, hmac: the version to use. Default: the newest. */
  readonly keyVersion?: number;
  /** Inputs in place of the one in this object, with the same fields. */
  readonly batch?: readonly TransitInput[];
}

/** Body of a request for a data key. Other fields are ignored. */
export interface DataKeyRequest {
  /** Length of the data key: 128, 256 or 512. */
  readonly bits?: number;
  /** Whether the response has the data key itself. */
  readonly plaintext?: boolean;
  /** As for encrypt. */
  readonly aad?: string;
}

/** Body of a request for random bytes. Other fields are ignored. */
export interface RandomRequest {
  /** How many. */
  readonly bytes?: number;
}

/** A version of a transit key. */
export interface TransitKeyVersion {
  /** When it was made. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** The public key in PEM, or of `x25519` as a recipient of age, `age1…`; only of asymmetric keys. */
  readonly publicKey?: string;
}

/** A transit key without its private parts. */
export interface TransitKey {
  /** The key's name in its canonical form. */
  readonly name: string;
  /** Algorithm of the key, which decides its operations. */
  readonly type: "aes256-gcm96" | "ed25519" | "ecdsa-p256" | "x25519" | "rsa-2048" | "rsa-4096" | "hmac";
  /** Number of the newest version, which encrypts and signs. */
  readonly latestVersion: number;
  /** The lowest version that decrypts and verifies. */
  readonly minDecryptionVersion: number;
  /** Whether the root token may export the private part. */
  readonly exportable: boolean;
  /** Whether the key can be deleted. */
  readonly deletionAllowed: boolean;
  /** The versions by their numbers. */
  readonly versions: Readonly<Record<string, TransitKeyVersion>>;
}

/** A transit key in the list. */
export interface TransitKeyEntry {
  /** The key's name in its canonical form. */
  readonly name: string;
  /** Algorithm of the key, which decides its operations. */
  readonly type: "aes256-gcm96" | "ed25519" | "ecdsa-p256" | "x25519" | "rsa-2048" | "rsa-4096" | "hmac";
  /** Number of the newest version, which encrypts and signs. */
  readonly latestVersion: number;
}

/** Transit keys in ascending order of the UTF-8 bytes of their names. */
export interface TransitKeyList {
  /** The keys that the token may see. */
  readonly keys: readonly TransitKeyEntry[];
  /** Names of keys that cannot be decrypted. They are not among the keys. */
  readonly damaged?: readonly string[];
}

/** The private parts of an exportable key. */
export interface ExportedTransitKey {
  /** The key's name in its canonical form. */
  readonly name: string;
  /** Algorithm of the key, which decides its operations. */
  readonly type: "aes256-gcm96" | "ed25519" | "ecdsa-p256" | "x25519" | "rsa-2048" | "rsa-4096" | "hmac";
  /** By version, in base64: PKCS #8 in DER of an asymmetric key, otherwise the key's bytes. */
  readonly keys: Readonly<Record<string, string>>;
}

/** Result of one input of a batch. A refused input has `error` and `code`. */
export interface TransitResult {
  /** encrypt, rewrap, datakey. */
  readonly ciphertext?: string;
  /** decrypt, datakey: in base64. */
  readonly plaintext?: string;
  /** sign. */
  readonly signature?: string;
  /** unwrap: in base64. */
  readonly fileKey?: string;
  /** hmac. */
  readonly hmac?: string;
  /** verify: whether the signature or MAC is right. */
  readonly valid?: boolean;
  /** Reason why this input was refused. */
  readonly error?: string;
  /** Code of a refused input. */
  readonly code?: "BAD_REQUEST";
}

/** Result of an encryption or rewrap. */
export interface CiphertextResult {
  /** encrypt, rewrap, datakey. */
  readonly ciphertext?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Result of a decryption. */
export interface PlaintextResult {
  /** decrypt, datakey: in base64. */
  readonly plaintext?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Result of unwrapping. */
export interface FileKeyResult {
  /** unwrap: in base64. */
  readonly fileKey?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Result of signing. */
export interface SignatureResult {
  /** sign. */
  readonly signature?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Result of a verification. */
export interface ValidityResult {
  /** verify: whether the signature or MAC is right. */
  readonly valid?: boolean;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Result of making a MAC. */
export interface HmacResult {
  /** hmac. */
  readonly hmac?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** A data key, encrypted and, when it was asked for, itself. */
export interface DataKey {
  /** encrypt, rewrap, datakey. */
  readonly ciphertext?: string;
  /** decrypt, datakey: in base64. */
  readonly plaintext?: string;
  /** Results of a batch, in its order. */
  readonly results?: readonly TransitResult[];
}

/** Confirmation of a deletion. */
export interface TransitDeleted {
  /** Always true. */
  readonly ok: true;
  /** The key's name in its canonical form. */
  readonly name: string;
  /** For people. */
  readonly message: string;
}

/** Random bytes. */
export interface RandomBytes {
  /** In base64. */
  readonly random: string;
}

/** The current one-time code of a secret. */
export interface OneTimeCode {
  /** The secret's path in its canonical form. */
  readonly path: string;
  /** The code. */
  readonly code: string;
  /** Seconds until the next code. */
  readonly validFor: number;
  /** Seconds between two codes. */
  readonly period: number;
  /** Whether the secret has a form that only seeds have, such as an `otpauth://` URL, and is not bare base32. */
  readonly isUrl: boolean;
}

/** Body of a batch. */
export interface BatchRequest {
  /** The operations. Each has exactly one of get, put, delete, trash, move and copy. */
  readonly operations: readonly (BatchGet | BatchPut | BatchDelete | BatchTrash | BatchMove | BatchCopy)[];
}

/** Reads a secret. */
export interface BatchGet {
  /** Path of the secret to read, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly get: string;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Stores a secret. */
export interface BatchPut {
  /** Path to store the secret at, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly put: string;
  /** The secret value. At most 1048576 bytes of UTF-8, without lone surrogates. With `encoding`, the value in base64, with the standard or the URL alphabet, with or without padding; the limit is for the base64. */
  readonly value: string;
  /** Present for a binary value. */
  readonly encoding?: "base64";
  /** Kind of secret. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** Description for people. At most 4096 bytes of UTF-8. */
  readonly description?: string;
  /** When the value expires. A reminder: nothing is deleted. ISO 8601 with a time zone. */
  readonly expiresAt?: string;
  /** Texts for programs, sealed with the metadata: at most 64, with names of 1 to 128 bytes, 16384 bytes of UTF-8 in all. The same as `custom_metadata` for clients of Vault. */
  readonly custom?: Readonly<Record<string, string>>;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Deletes a secret permanently. */
export interface BatchDelete {
  /** Path of the secret to delete, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly delete: string;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Moves a secret to the trash, in place of one that is there. */
export interface BatchTrash {
  /** Path of the secret to move to the trash, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly trash: string;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Moves or renames a secret with its times, versions and history. */
export interface BatchMove {
  /** Path of the secret to move, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly move: string;
  /** The new path, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly to: string;
  /** Whether a secret that the move replaces goes to the trash. Default: it is deleted. */
  readonly trashReplaced?: boolean;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Stores the current value and metadata of a secret as a new secret at another path. */
export interface BatchCopy {
  /** Path of the secret to copy, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly copy: string;
  /** The new path, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly to: string;
  /** Etag, without quotes, that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Body of put. */
export interface PutRequest {
  /** The secret value. At most 1048576 bytes of UTF-8, without lone surrogates. With `encoding`, the value in base64, with the standard or the URL alphabet, with or without padding; the limit is for the base64. */
  readonly value: string;
  /** Present for a binary value. */
  readonly encoding?: "base64";
  /** Kind of secret. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** Description for people. At most 4096 bytes of UTF-8. */
  readonly description?: string;
  /** When the value expires. A reminder: nothing is deleted. ISO 8601 with a time zone. */
  readonly expiresAt?: string;
  /** Texts for programs, sealed with the metadata: at most 64, with names of 1 to 128 bytes, 16384 bytes of UTF-8 in all. The same as `custom_metadata` for clients of Vault. */
  readonly custom?: Readonly<Record<string, string>>;
}

/** Body of a change of the metadata. null removes a field; a field that is absent stays. */
export interface MetadataRequest {
  /** Kind of secret. */
  readonly type?: null | "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** Description for people. At most 4096 bytes of UTF-8. */
  readonly description?: string | null;
  /** When the value expires. A reminder: nothing is deleted. ISO 8601 with a time zone. */
  readonly expiresAt?: string | null;
  /** Texts for programs, in place of the current ones. */
  readonly custom?: null | Readonly<Record<string, string>>;
}

/** A host that requests with the secret may go to. The binding is sealed with the secret, and every new version of the secret keeps it. */
export interface UseRequest {
  /** DNS name or IP address, without scheme, port or wildcard. */
  readonly host: string;
  /** Port of the host. */
  readonly port?: number;
  /** The header that carries the secret. */
  readonly header?: string;
  /** The header's value: `{}` stands for the secret. Default: `Bearer {}`. */
  readonly format?: string;
  /** User name of Basic authentication, in place of `header` and `format`. */
  readonly basic?: string;
  /** Allowed methods. Default: all. */
  readonly methods?: readonly string[];
  /** Allowed paths: `*` stands for characters within a segment, `**` across segments. Default: all. */
  readonly paths?: readonly string[];
  /** Whether a person must approve: never, each request, once a session, or once in a time such as 10m. */
  readonly ask?: string;
  /** Whether the host may have a private address. */
  readonly private?: boolean;
  readonly githubApp?: GithubApp;
  readonly oauth?: OAuth;
  readonly sigv4?: SigV4;
  /** Name of the route `/r/NAME/` at the broker. */
  readonly name?: string;
}

/** The secret is the private key of an app of GitHub (RSA, in PEM), which the key worker exchanges for a token of an installation. Requests carry the token in place of the secret. */
export interface GithubApp {
  /** The app's id, or its client id. */
  readonly appId: string;
  /** The installation's id. */
  readonly installation: string;
  /** URL of the API. Default: `https://api.github.com` for `github.com` and `api.github.com`, else the host itself. At most 2048 bytes of UTF-8. */
  readonly api?: string;
}

/** The secret is a JSON object with `refreshToken` and perhaps `clientSecret`, which the key worker exchanges for an access token (RFC 6749, section 6). Requests carry the access token in place of the secret. */
export interface OAuth {
  /** URL of the token endpoint: https, without user and fragment. At most 2048 bytes of UTF-8. */
  readonly tokenUrl: string;
  /** The client's id. At most 256 bytes of UTF-8. */
  readonly clientId: string;
  /** Scopes to ask for, separated by spaces. Default: those of the refresh token. At most 1024 bytes of UTF-8. */
  readonly scope?: string;
}

/** The secret is an access key of AWS, a JSON object with `accessKeyId`, `secretAccessKey` and perhaps `sessionToken`, and signs the request's head (Signature Version 4). */
export interface SigV4 {
  /** The service, as signatures name it. */
  readonly service: string;
  /** The region, as signatures name it. */
  readonly region: string;
}

/** A host that requests with a secret may go to. */
export interface Use {
  /** Path of the secret. */
  readonly path: string;
  /** DNS name or IP address, without scheme, port or wildcard. */
  readonly host: string;
  /** Port of the host. */
  readonly port: number;
  /** The header that carries the secret. */
  readonly header: string;
  /** The header's value: `{}` stands for the secret. Default: `Bearer {}`. */
  readonly format?: string;
  /** User name of Basic authentication, in place of `header` and `format`. */
  readonly basic?: string;
  /** Allowed methods. Default: all. */
  readonly methods?: readonly string[];
  /** Allowed paths: `*` stands for characters within a segment, `**` across segments. Default: all. */
  readonly paths?: readonly string[];
  /** Whether a person must approve: never, each request, once a session, or once in a time such as 10m. */
  readonly ask: string;
  /** Whether the host may have a private address. */
  readonly private: boolean;
  readonly githubApp?: GithubApp;
  readonly oauth?: OAuth;
  readonly sigv4?: SigV4;
  /** Name of the route `/r/NAME/` at the broker. */
  readonly name?: string;
}

/** The binding was stored. */
export interface UseSet {
  /** Always true. */
  readonly ok: boolean;
  /** Path of the secret. */
  readonly path: string;
  /** DNS name or IP address, without scheme, port or wildcard. */
  readonly host: string;
  /** Port of the host. */
  readonly port: number;
  /** The header that carries the secret. */
  readonly header: string;
  /** The header's value: `{}` stands for the secret. Default: `Bearer {}`. */
  readonly format?: string;
  /** User name of Basic authentication, in place of `header` and `format`. */
  readonly basic?: string;
  /** Allowed methods. Default: all. */
  readonly methods?: readonly string[];
  /** Allowed paths: `*` stands for characters within a segment, `**` across segments. Default: all. */
  readonly paths?: readonly string[];
  /** Whether a person must approve: never, each request, once a session, or once in a time such as 10m. */
  readonly ask: string;
  /** Whether the host may have a private address. */
  readonly private: boolean;
  readonly githubApp?: GithubApp;
  readonly oauth?: OAuth;
  readonly sigv4?: SigV4;
  /** Name of the route `/r/NAME/` at the broker. */
  readonly name?: string;
}

/** Code of a login, either `code`, `codeVerifier` and `redirectUri` (RFC 7636), or `deviceCode` (RFC 8628). */
export interface LoginRequest {
  /** The authorization code. */
  readonly code?: string;
  /** The text whose SHA-256 was sent as `code_challenge`. */
  readonly codeVerifier?: string;
  /** The address to which the code was sent. */
  readonly redirectUri?: string;
  /** The device code. */
  readonly deviceCode?: string;
}

/** Result of a login. */
export interface LoggedIn {
  /** Always true. */
  readonly ok: boolean;
  /** Path of the secret. */
  readonly path: string;
  /** Whether the refresh token is stored. `slow-down`: it is not, and requests must come 5 seconds less often. */
  readonly state: "stored" | "pending" | "slow-down";
}

/** Bindings of secrets to hosts. */
export interface UseList {
  /** The bindings, in the order of the secrets' paths. */
  readonly uses: readonly Use[];
}

/** Body of a new session at the broker. */
export interface AgentRequest {
  /** The secrets that the session may use, or subtrees, which end in a slash. Empty: all. */
  readonly paths?: readonly string[];
  /** Seconds until the session's token expires. 0: never. */
  readonly ttlSeconds?: number;
  /** Hosts that the session may reach without a credential. */
  readonly allowHosts?: readonly string[];
  /** Whether the session may reach every other host as well. */
  readonly egress?: "any" | "listed";
}

/** A host that the broker adds a credential for. */
export interface BrokerUse {
  /** DNS name or IP address. */
  readonly host: string;
  /** Port of the host. */
  readonly port: number;
  /** The header that carries the credential. */
  readonly header: string;
  /** Name of the route `/r/NAME/`; null when it has none. */
  readonly name: string | null;
}

/** Facts that a program needs to use the broker. */
export interface BrokerAccess {
  /** The broker's port on 127.0.0.1. */
  readonly port: number;
  /** The session's certificate authority, in PEM: one certificate, or several where one of the hosts is a subdomain of another. */
  readonly certificate: string;
  /** The hosts. */
  readonly uses: readonly BrokerUse[];
}

/** A new session at the broker. */
export interface Agent {
  /** The broker's port on 127.0.0.1. */
  readonly port: number;
  /** The session's certificate authority, in PEM: one certificate, or several where one of the hosts is a subdomain of another. */
  readonly certificate: string;
  /** The hosts. */
  readonly uses: readonly BrokerUse[];
  /** Always true. */
  readonly ok: boolean;
  /** The session's token, shown once. */
  readonly token: string;
  /** The token's name. */
  readonly name: string;
  /** Operations that the token allows. */
  readonly can: readonly string[];
  /** The secrets that the token covers. */
  readonly paths: readonly string[];
  /** When it was created. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When it expires. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string | null;
  /** When it was last used. ISO 8601, UTC, with milliseconds. */
  readonly lastUsedAt: string | null;
}

/** A program, as the operating system shows it. */
export interface Program {
  /** Its process id. */
  readonly pid: number;
  /** Name that the program gives itself. */
  readonly name: string;
}

/** Digest that stands for a query of more than 1,024 bytes. */
export interface QueryDigest {
  /** Length of the query in bytes. */
  readonly length: number;
  /** SHA-256 of the query, in hexadecimal. */
  readonly sha256: string;
}

/** A request that waits for approval, as it will be sent. */
export interface Approval {
  /** The id. */
  readonly id: string;
  /** Name of the token. */
  readonly token: string;
  /** The secret. */
  readonly path: string;
  /** The request's method. */
  readonly method: string;
  /** The request's scheme. */
  readonly scheme: "https";
  /** The host. */
  readonly host: string;
  /** Port of the host. */
  readonly port: number;
  /** The request's path, as it is sent. */
  readonly target: string;
  /** The request's query as it is sent, without `?`, empty where there is none; for one of more than 1,024 bytes, its digest. */
  readonly query: string | QueryDigest;
  /** The program that has connected to the broker, as Linux shows it (in a sandbox, its relay); null where it cannot be seen. */
  readonly program: Program | null;
  /** Since when it waits. ISO 8601, UTC, with milliseconds. */
  readonly since: string;
}

/** Requests that wait for approval. */
export interface ApprovalList {
  /** The requests, the oldest first. */
  readonly approvals: readonly Approval[];
  /** Whether an approval needs the passphrase. Missing where it does not. */
  readonly passphrase?: boolean;
}

/** A decision about a request that waits. */
export interface DecisionRequest {
  /** Whether the request may continue. */
  readonly approve: boolean;
  /** For how long: `request`, `session`, or seconds; never longer than the binding's `ask` says. */
  readonly for?: string | number;
  /** The vault's passphrase, where the server asks for it. At most 1024 bytes of UTF-8. */
  readonly passphrase?: string;
}

/** Body of a new token. */
export interface TokenRequest {
  /** Name: 1 to 64 of a-z, 0-9, dot, dash and underscore. `root` is the root token. */
  readonly name: string;
  /** Operations that the token allows. */
  readonly can?: readonly (
    | "list"
    | "get"
    | "put"
    | "delete"
    | "lock"
    | "unlock"
    | "metrics"
    | "audit"
    | "encrypt"
    | "decrypt"
    | "sign"
    | "use"
  )[];
  /** The secrets that the token covers, or subtrees, which end in a slash. Empty: all. */
  readonly paths?: readonly string[];
  /** Seconds until the token expires. 0: never. */
  readonly ttlSeconds?: number;
}

/** Body of a rotation of a token. */
export interface RotationRequest {
  /** Grace period for the old value, in seconds. */
  readonly overlapSeconds?: number;
}

/** A record of the audit log. Its fields depend on the event. */
export interface AuditRecord {
  /** Number of the record. */
  readonly seq: number;
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** Kind of the event. */
  readonly event: string;
  /** Name of the token; `root` is the root token. */
  readonly token?: string;
  /** Address of the client; `unix` is the Unix socket. */
  readonly address?: string;
  /** Identifies the request in the server's log, or the batch. */
  readonly requestId?: string;
  /** The secret's path. */
  readonly path?: string;
  /** Target of a move or copy. */
  readonly to?: string;
  /** Client token, or id of the key, that was created, changed or deleted. */
  readonly name?: string;
  /** For a key that was created or deleted: `key`, or `passphrase`. */
  readonly kind?: string;
  /** For a key that was created or deleted: its label. */
  readonly label?: string;
  /** The requested version. */
  readonly version?: number;
  /** Etag of the secret that was read or stored. */
  readonly etag?: string;
  /** Prefix of a list. */
  readonly prefix?: string;
  /** Number of secrets in a list, of records lost in a gap, or of lockouts in a minute. */
  readonly count?: number;
  /** Present in the records of a batch. */
  readonly batch?: true;
  /** Status of the response. 0: the client disconnected. */
  readonly status?: number;
  /** Code of the error. */
  readonly code?: string;
  /** Why the vault was locked, a checkpoint was made or a secret destroyed, or what was wrong with the log before a `mismatch`. */
  readonly reason?: string;
  /** For a checkpoint: number of the first record that it vouches for. */
  readonly from?: number;
  /** For a lockout: which credential was wrong. */
  readonly credential?: string;
  /** For a use: host to which the secret was sent. */
  readonly host?: string;
  /** For a use: method of the request. */
  readonly method?: string;
  /** When the first record of a gap was lost. ISO 8601, UTC, with milliseconds. */
  readonly since?: string;
  /** Name of the signing key. */
  readonly key?: string;
  /** The MAC. */
  readonly mac?: string;
}

/** Where the log ends. A copy kept elsewhere reveals any later change or removal of earlier records. */
export interface AuditHead {
  /** Name of the log, chosen when its first file was created. */
  readonly log: string;
  /** Number of the record. */
  readonly seq: number;
  /** Value of the hash chain. */
  readonly chain: string;
}

/** A checkpoint. `chain` is the value before it. */
export interface AuditCheckpoint {
  /** Name of the log, chosen when its first file was created. */
  readonly log: string;
  /** Number of the record. */
  readonly seq: number;
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** Value of the hash chain. */
  readonly chain: string;
  /** Number of the first record that it vouches for. Missing, with `reason`, in one of an earlier version. */
  readonly from?: number;
  /** Why the checkpoint was made. */
  readonly reason?: string;
  /** Name of the signing key. */
  readonly key: string;
  /** The MAC. */
  readonly mac: string;
}

/** Records of the audit log. */
export interface AuditPage {
  /** Oldest first. */
  readonly records: readonly AuditRecord[];
  readonly head?: AuditHead;
}

/** Verdicts on checkpoints. */
export interface AuditVerdicts {
  /** In the order of the checkpoints. `unknown`: signed with a key that is not this vault's. */
  readonly verdicts: readonly ("valid" | "wrong" | "unknown")[];
}

/** A token without its value. */
export interface Token {
  /** Name: 1 to 64 of a-z, 0-9, dot, dash and underscore. `root` is the root token. */
  readonly name: string;
  /** Operations that the token allows. */
  readonly can: readonly (
    | "list"
    | "get"
    | "put"
    | "delete"
    | "lock"
    | "unlock"
    | "metrics"
    | "audit"
    | "encrypt"
    | "decrypt"
    | "sign"
    | "use"
  )[];
  /** The secrets that the token covers, or subtrees, which end in a slash. Empty: all. */
  readonly paths: readonly string[];
  /** When the token was created; null for the root token. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string | null;
  /** When the token expires; null: never. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string | null;
  /** When the token was last used, to the minute; null if never, and for the root token. ISO 8601, UTC, with milliseconds. */
  readonly lastUsedAt: string | null;
  /** Only of a child token: the name of the token that created it, with which it ends. */
  readonly parent?: string;
}

/** A token with its value, which is returned only once. */
export interface NewToken {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** The value, for `Authorization: Bearer`. */
  readonly token: string;
  /** Name: 1 to 64 of a-z, 0-9, dot, dash and underscore. `root` is the root token. */
  readonly name: string;
  /** Operations that the token allows. */
  readonly can: readonly (
    | "list"
    | "get"
    | "put"
    | "delete"
    | "lock"
    | "unlock"
    | "metrics"
    | "audit"
    | "encrypt"
    | "decrypt"
    | "sign"
    | "use"
  )[];
  /** The secrets that the token covers, or subtrees, which end in a slash. Empty: all. */
  readonly paths: readonly string[];
  /** When the token was created; null for the root token. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string | null;
  /** When the token expires; null: never. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string | null;
  /** When the token was last used, to the minute; null if never, and for the root token. ISO 8601, UTC, with milliseconds. */
  readonly lastUsedAt: string | null;
}

/** The client tokens. */
export interface TokenList {
  /** In ascending order of names. */
  readonly tokens: readonly Token[];
}

/** Confirms that a token was revoked. */
export interface Revoked {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Name: 1 to 64 of a-z, 0-9, dot, dash and underscore. `root` is the root token. */
  readonly name: string;
  /** Result of the request, for people. */
  readonly message: string;
}

/** A code for the review page. */
export interface ReviewCode {
  readonly ok: true;
  /** Works once. */
  readonly code: string;
  readonly expiresInSeconds: number;
  /** The page's address with the code. */
  readonly url: string;
}

/** Trades a code of the review page. */
export interface ReviewTrade {
  readonly code: string;
}

/** The review page's token. */
export interface ReviewToken {
  readonly ok: true;
  readonly token: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string;
}

/** The end of a storm of unlocks. */
export interface ReviewStorm {
  readonly ok: true;
  readonly unlocks: number;
  readonly durationMs: number;
  /** Gets that the server sent itself during the storm; 0 without a Unix socket or a secret. */
  readonly gets: number;
  /** Their round trips, 99th percentile, in milliseconds; null without any. */
  readonly getP99: number | null;
  /** The same of a server that only answers, in the same process. */
  readonly bareP99: number | null;
}

/** Facts on the review page. */
export interface ReviewFacts {
  readonly version: string;
  readonly node: string;
  readonly keys: KeyHolders;
  readonly slots: readonly ReviewSlot[];
  readonly tokens: readonly Token[];
  /** Weaknesses of the server and its machine, as `strongroom prove` lists them. */
  readonly weaknesses: readonly string[];
  /** The last `strongroom prove` of this server; null before the first one. */
  readonly lastProve: unknown;
  /** A check of the audit log, at most 30 seconds old; null while the vault is locked, and when the log is off, empty, longer than 16 MiB or cannot be read. */
  readonly audit: unknown;
  readonly files: readonly ProgramFile[];
}

/** Result of a run of `strongroom prove`. */
export interface LastProve {
  /** ISO 8601, UTC, with milliseconds. */
  readonly at: string;
  readonly verdict: "holds" | "fails" | "unknown";
  readonly checks: number;
  /** Checks that do not hold. */
  readonly failed: number;
}

/** Result of a check of the audit log. */
export interface AuditCheck {
  /** Records that were checked. */
  readonly records: number;
  /** Number of the oldest of them. */
  readonly firstSeq: number;
  /** The last record that a checkpoint of this vault covers; 0: none. */
  readonly covered: number;
  /** Places where the chain or a checkpoint does not match. */
  readonly problemCount: number;
  /** The first ten of them. */
  readonly problems: readonly string[];
}

/** Keys that each part of the server holds. */
export interface KeyHolders {
  readonly frontEnd: number;
  readonly keyWorker: number;
}

/** A way into the vault. */
export interface ReviewSlot {
  readonly id: string;
  readonly kind: "passphrase" | "key";
  readonly label: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** Cost of one guess. */
  readonly cost: string;
}

/** A file of the program. */
export interface ProgramFile {
  readonly name: string;
  readonly sha256: string;
}

/** Confirms an operation on the vault. */
export interface Acknowledgement {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Result of the request, for people. */
  readonly message: string;
}

/** Confirms that a vault was created. */
export interface Initialized {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Result of the request, for people. */
  readonly message: string;
  /** Directory of the vault, or host and name of its database. */
  readonly vaultPath: string;
}

/** State of the vault, which anyone on this machine may read. */
export interface VaultStatus {
  /** Whether a vault exists. */
  readonly initialized: boolean;
  /** Whether the vault is locked; true before init. */
  readonly locked: boolean;
  /** Number of stored secrets, also while the vault is locked. */
  readonly secretCount: number;
  /** Directory of the vault, or host and name of its database. */
  readonly vaultPath: string;
  /** False once the server is shutting down. */
  readonly serverRunning: boolean;
  /** The listening port. */
  readonly port: number;
  /** The port for Vault's clients, if it is on. */
  readonly vaultPort?: number;
  /** The broker's port on 127.0.0.1, if it is on. */
  readonly brokerPort?: number;
  /** Secrets whose refresh token is not valid, so that a person has to store another one, if there are any. */
  readonly reauthorize?: readonly string[];
  readonly certificate?: ServerCertificate;
  /** Milliseconds of inactivity after which the vault locks. 0: never. */
  readonly idleTimeoutMs: number;
  /** Time of the last successful init or unlock, or of the last authenticated operation on secrets; before any of them, the server's start. ISO 8601, UTC, with milliseconds. */
  readonly lastActivity: string;
  readonly lastLock: LastLock;
  /** Version of the server. */
  readonly version: string;
  /** Grows by one with each request that changes secrets, before its response; each start of the server begins at another number. Missing where several servers share a database, and in servers of an earlier build. */
  readonly changes?: number;
  readonly rotation?: RotationProgress;
  /** False while the database does not respond. `secretCount` is then the last known number. */
  readonly storageAvailable?: boolean;
  /** Why the storage is not available, and what to do. */
  readonly storageProblem?: string;
}

/** The certificate that new connections get. Missing where the server is of an earlier build. */
export interface ServerCertificate {
  /** When it ends. From 14 days before, `strongroom status` says so. ISO 8601, UTC, with milliseconds. */
  readonly endsAt: string;
}

/** Why and when the vault was last locked. While it is unlocked: the time before. */
export interface LastLock {
  /** On request; after the idle timeout; because the key worker crashed or the stored header got another key; because the server started or is stopping. */
  readonly reason: "request" | "idle" | "crash" | "start" | "shutdown";
  /** When the vault was locked, or the server started. ISO 8601, UTC, with milliseconds. */
  readonly at: string;
}

/** The passphrase or a key. */
export interface Key {
  /** Identifies the key; `passphrase` for the passphrase. */
  readonly id: string;
  /** The passphrase or a generated key. */
  readonly kind: "passphrase" | "key";
  /** Name for people; `passphrase` for the passphrase. */
  readonly label: string;
  /** When the key was created or the passphrase was last changed. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
}

/** The passphrase and the keys. */
export interface KeyList {
  /** The passphrase first, then the keys, oldest first. */
  readonly keys: readonly Key[];
}

/** A new key. */
export interface CreatedKey {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Identifies the key; `passphrase` for the passphrase. */
  readonly id: string;
  /** Name for people; `passphrase` for the passphrase. */
  readonly label: string;
  /** The key, which unlocks the vault. Case and dashes do not matter. The last character of each group is a checksum. */
  readonly key: string;
}

/** Confirms that the master key was rotated. */
export interface Rotated {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Result of the request, for people. */
  readonly message: string;
  /** The labels of the keys that no longer unlock the vault. */
  readonly removed: readonly string[];
}

/** Progress of a rotation of the master key. */
export interface RotationProgress {
  /** Number of secrets encrypted with the new key, as far as checked since the server started. */
  readonly done: number;
  /** Number of secrets. */
  readonly total: number;
}

/** Metadata of the secret. A field that was not given is absent. */
export interface Metadata {
  /** Kind of secret. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** Description for people. */
  readonly description?: string;
  /** When the value expires. Nothing is deleted then. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt?: string;
  /** Texts for programs, sealed with the metadata: at most 64, with names of 1 to 128 bytes, 16384 bytes of UTF-8 in all. The same as `custom_metadata` for clients of Vault. */
  readonly custom?: Readonly<Record<string, string>>;
}

/** Confirms that a secret was stored. */
export interface Stored {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Length of the value in bytes: of a text, in UTF-8. */
  readonly bytes: number;
  readonly metadata: Metadata;
  /** Number of the version: 1 at first, and one more after each put that changes something. */
  readonly version: number;
  /** Names this state of the secret, for If-Match and If-None-Match, which take it in quotes. */
  readonly etag: string;
}

/** A secret with its value. */
export interface Secret {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** The secret value. */
  readonly value: string;
  /** Present if the value is in base64. */
  readonly encoding?: "base64";
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored. Never decreases. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at first, and one more after each put that changes something. */
  readonly version: number;
  /** Names this state of the secret, for If-Match and If-None-Match, which take it in quotes. */
  readonly etag: string;
}

/** A secret in a list, without its value. */
export interface SecretEntry {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Present for a binary value. */
  readonly encoding?: "base64";
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored. Never decreases. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at first, and one more after each put that changes something. */
  readonly version: number;
  /** Names this state of the secret, for If-Match and If-None-Match, which take it in quotes. */
  readonly etag: string;
}

/** A version of a secret, without its value. */
export interface SecretVersion {
  /** Present if the version is deleted: when. An undo brings it back. ISO 8601, UTC, with milliseconds. */
  readonly deletedAt?: string;
  /** Present if the value was destroyed for good. */
  readonly destroyed?: true;
  /** Present for a binary value. */
  readonly encoding?: "base64";
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When this version was last stored. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at first, and one more after each put that changes something. */
  readonly version: number;
  /** Names this state of the secret, for If-Match and If-None-Match, which take it in quotes. */
  readonly etag: string;
}

/** The versions of a secret. */
export interface SecretHistory {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Newest first, including the current version. */
  readonly versions: readonly SecretVersion[];
  /** Number of earlier versions that cannot be decrypted. They are not among the versions. */
  readonly damaged?: number;
}

/** Secrets in ascending order of the UTF-8 bytes of their paths. */
export interface SecretList {
  /** The matching secrets. */
  readonly entries: readonly SecretEntry[];
  /** Present if more secrets follow: continue `after` this path. */
  readonly next?: string;
  /** Paths whose metadata cannot be decrypted. They are not among the entries. */
  readonly damaged?: readonly string[];
}

/** Confirms that a secret is in the trash. */
export interface Trashed {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Result of the request, for people. */
  readonly message: string;
  /** When the secret was moved to the trash. ISO 8601, UTC, with milliseconds. */
  readonly deletedAt: string;
}

/** A secret in the trash, without its value. */
export interface TrashEntry {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** When the secret was moved to the trash. ISO 8601, UTC, with milliseconds. */
  readonly deletedAt: string;
  /** Present for a binary value. */
  readonly encoding?: "base64";
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored. Never decreases. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at first, and one more after each put that changes something. */
  readonly version: number;
  /** Names this state of the secret, for If-Match and If-None-Match, which take it in quotes. */
  readonly etag: string;
}

/** Secrets in the trash, in ascending order of the UTF-8 bytes of their paths. */
export interface TrashList {
  /** The matching secrets. */
  readonly entries: readonly TrashEntry[];
  /** Present if more secrets follow: continue `after` this path. */
  readonly next?: string;
  /** Paths whose metadata cannot be decrypted. They are not among the entries. */
  readonly damaged?: readonly string[];
}

/** Body of a check. */
export interface CheckRequest {
  /** 32 random bytes in base64, new for each check. Digests of checks with different keys cannot be compared. */
  readonly key: string;
  /** Findings to return for each value. */
  readonly parts?: readonly ("strength" | "reuse" | "search" | "breach")[];
  /** Only paths that start with this text. */
  readonly prefix?: string;
  /** Only paths after this one: `next` of the previous response. */
  readonly after?: string;
  /** Most entries. */
  readonly limit?: number;
}

/** Judgements of values, in ascending order of the paths. */
export interface CheckList {
  /** The secrets. */
  readonly entries: readonly CheckEntry[];
  /** Present if more secrets follow: continue `after` this path. */
  readonly next?: string;
  /** Paths of secrets that cannot be decrypted. They are not among the entries. */
  readonly damaged?: readonly string[];
}

/** Findings on a value. No field holds any part of it. */
export interface CheckEntry {
  /** The secret's path. */
  readonly path: string;
  /** Length of the value in bytes. */
  readonly bytes: number;
  /** Strength of a text, from 0 (guessed at once) to 4, on the scale of zxcvbn. Below 3 it is weak. Of a URL with a password, the password's. */
  readonly score?: number;
  /** Form of a text. `secret`: a URL with a password, or at least 12 bytes that look random, alone or in a URL. `address`: another URL, a host, an e-mail address. `text`: anything else. */
  readonly form?: "secret" | "address" | "text";
  /** Values of one check are equal if these are. Nothing else can be learned from it. */
  readonly reuse?: string;
  /** Digests with which the value, its base64 at each alignment, its hex, its UTF-16, and the longest line of a value of several lines are found in files. A value under 8 bytes has none. */
  readonly search?: readonly SearchDigest[];
  readonly breach?: BreachDigest;
}

/** Digest of a text to search for. */
export interface SearchDigest {
  /** Length of the text in bytes. */
  readonly bytes: number;
  /** The sum of b[i]·B^(7-i) over the first 8 bytes b of the text, modulo 2^32. B: the key's first 4 bytes, big endian, with the lowest bit set. */
  readonly start: number;
  /** The first 16 bytes of HMAC-SHA-256 of `search` and the text, under the key, in base64url. */
  readonly digest: string;
}

/** Digest for a comparison with lists of SHA-1 hashes. */
export interface BreachDigest {
  /** The first 8 hex digits of the value's SHA-1. */
  readonly prefix: string;
  /** The first 16 bytes of HMAC-SHA-256 of `breach` and the SHA-1, under the key, in base64url. */
  readonly digest: string;
}

/** Confirms a deletion. */
export interface Deleted {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Result of the request, for people. */
  readonly message: string;
}

/** Confirms that a snapshot was taken. */
export interface Snapshot {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** Result of the request, for people. */
  readonly message: string;
  /** Directory of the snapshot. */
  readonly directory: string;
  /** Number of secrets in it. */
  readonly secretCount: number;
  /** Present if this is the vault's own directory. Do not change or remove anything in it. */
  readonly direct?: true;
}

/** Why a request was refused. */
export interface Refusal {
  /** The fault and its remedy, for people. */
  readonly error: string;
  /** Error code, for programs. */
  readonly code:
    | "BAD_REQUEST"
    | "UNAUTHORIZED"
    | "FORBIDDEN"
    | "VAULT_LOCKED"
    | "NOT_FOUND"
    | "ALREADY_EXISTS"
    | "PRECONDITION_FAILED"
    | "RATE_LIMITED";
  /** With UNAUTHORIZED: which credential was wrong. */
  readonly credential?: "token" | "passphrase";
  /** With UNAUTHORIZED, for 30 days: why a client token is no longer valid. */
  readonly reason?: "expired" | "revoked" | "rotated";
  /** Index of the operation in the batch that was refused, from 0. */
  readonly index?: number;
}

/** Why the server failed. */
export interface Failure {
  /** The fault and its remedy, for people. */
  readonly error: string;
  /** Error code, for programs. */
  readonly code: "INTERNAL" | "INTEGRITY" | "UNAVAILABLE";
  /** Identifies the request in the server's log. */
  readonly requestId: string;
  /** Index of the operation in the batch that was refused, from 0. */
  readonly index?: number;
}

/** The results of a batch. */
export interface BatchResults {
  /** Always true. A failure has an error and a code instead. */
  readonly ok: true;
  /** One for each operation, in order. For a get: the secret, or why it was refused; for a put, move or copy: what was stored; for a delete or trash: a confirmation. */
  readonly results: readonly (Secret | Stored | Deleted | BatchRefusal)[];
}

/** Why a get was refused, in a batch of gets. */
export interface BatchRefusal {
  /** Error code, for programs. */
  readonly code: "BAD_REQUEST" | "FORBIDDEN" | "NOT_FOUND" | "PRECONDITION_FAILED" | "INTEGRITY";
  /** The fault and its remedy, for people. */
  readonly error: string;
}
