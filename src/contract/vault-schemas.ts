/** Schemas of responses about the vault and its keys. */
import { lockReasons } from "../observer.js";
import { count, list, message, object, ok, type Schema, schemaNamed, text, time } from "./json-schema.js";

const keyId = text("Identifies the key; `passphrase` is the passphrase.", "k7f3q9zx");
const keyLabel = text("Its name, for people; `passphrase` is the passphrase's.", "recovery");
const vaultPath = text(
  "Directory of the vault, or host and name of its database.",
  "/home/me/.local/share/strongroom/vault",
);

export const vaultSchemas = {
  Acknowledgement: object("Confirms an operation on the vault.", { ok, message }),
  Initialized: object("Confirms that a vault was created.", { ok, message, vaultPath }),
  VaultStatus: object(
    "State of the vault that anyone on this machine may read.",
    {
      initialized: { type: "boolean", description: "Whether a vault exists." },
      locked: { type: "boolean", description: "Whether the vault is locked; true before init." },
      secretCount: count("Number of stored secrets, also while locked."),
      vaultPath,
      serverRunning: { type: "boolean", description: "False once the server has begun to shut down." },
      port: { type: "integer", minimum: 1, maximum: 65_535, description: "The listening port.", examples: [13_100] },
      idleTimeoutMs: count("Milliseconds without activity after which the vault locks; 0 means never."),
      lastActivity: time(
        "Time of the last successful init or unlock, or of the last authenticated secret operation; before any, the server's start.",
      ),
      lastLock: schemaNamed("LastLock"),
      version: text("Version of the server.", "0.1.0"),
      rotation: schemaNamed("RotationProgress"),
      storageAvailable: {
        type: "boolean",
        description: "False while a database does not answer: `secretCount` is then the last number that it told.",
      },
    },
    ["rotation", "storageAvailable"],
  ),
  LastLock: object("Why and when the vault was locked last; while it is unlocked, the time before.", {
    reason: {
      ...text(
        "On request, after the idle timeout, because the key worker ended or the stored header took another key, because " +
          "the server started, or because it is stopping.",
        "idle",
      ),
      enum: lockReasons,
    },
    at: time("When it was locked, or the server started."),
  }),
  Key: object("A way into the vault.", {
    id: keyId,
    kind: { ...text("The passphrase, or a generated key.", "key"), enum: ["passphrase", "key"] },
    label: keyLabel,
    createdAt: time("When it was created, or the passphrase last changed."),
  }),
  KeyList: object("The ways into the vault.", {
    keys: list("The passphrase first, then the keys by age.", schemaNamed("Key")),
  }),
  CreatedKey: object("A new key.", {
    ok,
    id: keyId,
    label: keyLabel,
    key: text(
      "Its text, which opens the vault. Case and dashes do not matter. The last letter of each group checks the group.",
      "SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C",
    ),
  }),
  Rotated: object("Confirms that the master key is rotated.", {
    ok,
    message,
    removed: list("The labels of the keys that open nothing any more.", keyLabel),
  }),
  RotationProgress: object("Progress of a rotation of the master key.", {
    done: count("Number of secrets sealed under the new key, as far as checked since the server started."),
    total: count("Number of secrets."),
  }),
} satisfies Readonly<Record<string, Schema>>;
