/** Problems of secrets, from the server's judgements, their metadata and the audit log. */
import { randomBytes } from "node:crypto";
import { folderPrefix } from "../../cli/kit/args/paths.js";
import type { CheckEntry, SecretEntry, SecretType, StrongroomClient } from "../../client/client.js";

type Part = "strength" | "reuse" | "search" | "breach";

type Judgements = {
  readonly key: Buffer;
  readonly entries: readonly CheckEntry[];
  readonly damaged: readonly string[];
};

const pageEntries = 200;

/** Returns the judgements of a folder's values, by default of all. */
export async function judgeFolder(
  client: StrongroomClient,
  folder: string,
  parts: readonly Part[],
  onProgress: (done: number) => void = () => {},
): Promise<Judgements> {
  const key = randomBytes(32);
  const entries: CheckEntry[] = [];
  const damaged: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await client.check(key.toString("base64"), {
      parts,
      prefix: folderPrefix(folder),
      after,
      limit: pageEntries,
    });
    entries.push(...page.entries);
    damaged.push(...(page.damaged ?? []));
    onProgress(entries.length);
    if (page.next === undefined) return { key, entries, damaged };
    after = page.next;
  }
}

/** Last segments of paths, or parts of them, that name no password: as `import` and people write them. */
const otherNames = new Set(
  (
    "user username login email mail url uri host hostname server port address domain endpoint region name title notes note " +
    "comment description database db dbname schema issuer account id public pub cert certificate totp otp enabled debug"
  ).split(" "),
);

const areCredentials: { readonly [T in SecretType]: boolean } = {
  password: true,
  "api-key": true,
  "oauth-token": true,
  certificate: false,
  other: false,
};

/**
 * Whether a value is a credential, of which strength and age matter: by its type, by its form, and only where neither says so
 * by the end of its path.
 */
export function isCredential(
  { path, metadata: { type } }: Pick<SecretEntry, "path" | "metadata">,
  judged: CheckEntry | undefined,
): boolean {
  if (type !== undefined) return areCredentials[type];
  if (judged?.form === "secret") return true;
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return !otherNames.has(name.split(/[-_. ]/).at(-1) ?? "");
}

/** Names of problems, in the order in which they are shown. */
export const problems = ["weak", "reused", "breached", "expired", "expiring", "old", "unused"] as const;
export type Problem = (typeof problems)[number];

export type Verdict = {
  readonly path: string;
  readonly score: number | null;
  /** False: neither its form nor its type or path says so, and strength, reuse and age are not judged. */
  readonly isCredential: boolean;
  readonly problems: readonly Problem[];
  /** Other paths with the same value. */
  readonly sameAs: readonly string[];
  readonly updatedAt: string;
  readonly expiresAt: string | null;
  /** Null: not since `unusedSince`, or it was not asked for. */
  readonly lastUsedAt: string | null;
};

export type Limits = {
  readonly now: number;
  /** Milliseconds. */
  readonly oldMs: number;
  readonly expiringMs: number;
  /** Null: uses are not looked at. */
  readonly unusedMs: number | null;
};

type Known = {
  readonly listed: readonly SecretEntry[];
  readonly judged: Judgements;
  readonly breached: ReadonlySet<string>;
  /** When secrets were last used, within the time that is looked at. */
  readonly uses: ReadonlyMap<string, string>;
};

/** A score below is weak. */
const strongScore = 3;

export function verdictsOn({ listed, judged, breached, uses }: Known, limits: Limits): Verdict[] {
  const judgements = new Map(judged.entries.map((entry) => [entry.path, entry]));
  const credentials = new Set(
    listed.filter((entry) => isCredential(entry, judgements.get(entry.path))).map(({ path }) => path),
  );
  const same = pathsByValue(judged.entries.filter(({ path }) => credentials.has(path)));
  return listed.map((entry) => {
    const { path, updatedAt, metadata } = entry;
    const { score = null, reuse = "" } = judgements.get(path) ?? {};
    const sameAs = credentials.has(path) ? (same.get(reuse) ?? []).filter((other) => other !== path) : [];
    const found: Readonly<Record<Problem, boolean>> = {
      weak: credentials.has(path) && score !== null && score < strongScore,
      reused: sameAs.length > 0,
      breached: breached.has(path),
      ...judgeExpiry(metadata.expiresAt, limits),
      old: credentials.has(path) && Date.parse(updatedAt) < limits.now - limits.oldMs,
      unused: isUnused(entry, uses, limits),
    };
    return {
      path,
      score: credentials.has(path) ? score : null,
      isCredential: credentials.has(path),
      problems: problems.filter((problem) => found[problem]),
      sameAs,
      updatedAt,
      expiresAt: metadata.expiresAt ?? null,
      lastUsedAt: uses.get(path) ?? null,
    };
  });
}

function pathsByValue(entries: readonly CheckEntry[]): ReadonlyMap<string, readonly string[]> {
  const paths = new Map<string, string[]>();
  for (const { path, reuse, bytes } of entries) {
    if (reuse === undefined || bytes === 0) continue;
    const others = paths.get(reuse);
    if (others === undefined) paths.set(reuse, [path]);
    else others.push(path);
  }
  return paths;
}

function judgeExpiry(expiresAt: string | undefined, { now, expiringMs }: Limits) {
  const time = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  return { expired: time <= now, expiring: time > now && time <= now + expiringMs };
}

function isUnused({ path, updatedAt }: SecretEntry, uses: Known["uses"], { now, unusedMs }: Limits): boolean {
  return unusedMs !== null && !uses.has(path) && Date.parse(updatedAt) < now - unusedMs;
}
