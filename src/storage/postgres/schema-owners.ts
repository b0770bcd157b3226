/**
 * Owners of the schema and of what is in it. A statement on a table may run code that the table's owner has put there (rules,
 * triggers, defaults, …) with the rights of the user who serves. Any role that may create schemas in the database could have
 * made this one first.
 *
 * Trusted are the user itself, superusers, the database's owner, and the roles that the user is a member of. Roles that may
 * add triggers or references to a trusted owner's tables count as well.
 */
import type { PoolClient } from "pg";
import { StartError } from "../../errors.js";
import type { StoreProblem } from "../secret-store.js";
import { migrations } from "./migrations.js";

export type SchemaOwners = {
  readonly schemaExists: boolean;
  readonly hasVersionTable: boolean;
  readonly hasVaultTable: boolean;
  /** Null when all owners are trusted. */
  readonly foreign: ForeignOwner | null;
};

/** `what`: of the schema. `owner`: of the database. Names are quoted for SQL. */
export type ForeignOwner = {
  readonly what: string;
  readonly role: string;
  readonly owner: string;
  readonly database: string;
};

const trusted = `SELECT r.oid FROM pg_roles r
  WHERE r.rolsuper OR r.rolname IN (current_user, 'pg_database_owner')
    OR r.oid = (SELECT d.datdba FROM pg_database d WHERE d.datname = current_database())
    OR NOT (SELECT u.rolsuper FROM pg_roles u WHERE u.rolname = current_user) AND pg_has_role(r.oid, 'MEMBER')`;

/** The migrations make one default and one condition of each of these texts. */
const ownDefaults = "('now()', 'true')";
const ownConstraint = "CHECK (one)";

/** Bodies of the functions that the migrations make. */
const bodies = migrations.flatMap((text) => [...text.matchAll(/\$\$(.*?)\$\$/gs)].map(([, body = ""]) => body));

/** Code of roles that are not trusted, which no version of this program has made. */
const code = `
  SELECT CASE r.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'view ' WHEN 'f' THEN 'foreign table ' ELSE 'relation ' END
    || r.name AS what, r.relowner AS role FROM relation r WHERE r.is_foreign AND r.relkind NOT IN ('r', 'i')
  UNION ALL SELECT 'rule ' || quote_ident(w.rulename) || ' of ' || r.name, r.relowner
    FROM pg_rewrite w JOIN relation r ON r.oid = w.ev_class WHERE r.is_foreign AND r.relkind = 'r'
  UNION ALL SELECT 'policy ' || quote_ident(p.polname) || ' of ' || r.name, r.relowner
    FROM pg_policy p JOIN relation r ON r.oid = p.polrelid WHERE r.is_foreign
  UNION ALL SELECT 'row security of ' || r.name, r.relowner FROM relation r WHERE r.is_foreign AND r.relrowsecurity
  UNION ALL SELECT 'trigger ' || quote_ident(t.tgname) || ' of ' || r.name,
      CASE WHEN r.is_foreign THEN r.relowner ELSE p.proowner END
    FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE NOT t.tgisinternal AND (r.is_foreign OR p.proowner NOT IN (TABLE trusted))
  UNION ALL SELECT 'default of ' || r.name || '.' || quote_ident(a.attname), r.relowner
    FROM pg_attrdef d JOIN relation r ON r.oid = d.adrelid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE r.is_foreign AND (a.attgenerated <> '' OR pg_get_expr(d.adbin, d.adrelid) NOT IN ${ownDefaults})
  UNION ALL SELECT 'type of ' || r.name || '.' || quote_ident(a.attname), r.relowner
    FROM pg_attribute a JOIN relation r ON r.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    WHERE r.is_foreign AND r.relkind = 'r' AND NOT a.attisdropped AND t.typnamespace <> 'pg_catalog'::regnamespace
  UNION ALL SELECT 'constraint ' || quote_ident(c.conname) || ' of ' || r.name, r.relowner
    FROM pg_constraint c JOIN relation r ON r.oid = c.conrelid
    WHERE r.is_foreign AND c.contype IN ('c', 'x') AND pg_get_constraintdef(c.oid) <> '${ownConstraint}'
  UNION ALL SELECT 'constraint ' || quote_ident(c.conname) || ' of ' || f.oid::regclass, f.relowner
    FROM pg_constraint c JOIN relation r ON r.oid = c.confrelid JOIN pg_class f ON f.oid = c.conrelid
    WHERE c.contype = 'f' AND r.relname <> 'vault' AND f.relowner NOT IN (TABLE trusted)
  UNION ALL SELECT 'index ' || r.name, r.relowner FROM pg_index i JOIN relation r ON r.oid = i.indexrelid
    WHERE r.is_foreign AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
  UNION ALL SELECT 'table ' || f.oid::regclass || ', which inherits from ' || r.name, f.relowner
    FROM pg_inherits h JOIN relation r ON r.oid = h.inhparent JOIN pg_class f ON f.oid = h.inhrelid
    WHERE r.is_foreign OR f.relowner NOT IN (TABLE trusted)
  UNION ALL SELECT 'function strongroom.' || quote_ident(p.proname), p.proowner
    FROM routine p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.is_foreign AND NOT (p.prokind = 'f' AND l.lanname IN ('sql', 'plpgsql') AND p.prosrc = ANY ($1::text[])
      AND p.prosqlbody IS NULL AND p.proconfig IS NULL AND NOT p.prosecdef AND p.proargdefaults IS NULL
      AND NOT EXISTS (SELECT FROM unnest(p.prorettype || p.proargtypes::oid[] || p.proallargtypes) AS g (oid)
        JOIN pg_type t ON t.oid = g.oid WHERE t.typnamespace <> 'pg_catalog'::regnamespace))`;

const text = `WITH trusted AS (${trusted}),
space AS (SELECT n.oid, n.nspowner FROM pg_namespace n WHERE n.nspname = 'strongroom'),
relation AS (SELECT c.oid, c.relnamespace, c.relname, c.relkind, c.relowner, c.relrowsecurity,
  'strongroom.' || quote_ident(c.relname) AS name, c.relowner NOT IN (TABLE trusted) AS is_foreign
  FROM pg_class c WHERE c.relnamespace = (SELECT s.oid FROM space s)),
routine AS (SELECT p.*, p.proowner NOT IN (TABLE trusted) AS is_foreign
  FROM pg_proc p WHERE p.pronamespace = (SELECT s.oid FROM space s)),
code AS (${code}),
owned AS (
  SELECT 0 AS rank, 'the schema strongroom' AS what, s.nspowner AS role FROM space s WHERE s.nspowner NOT IN (TABLE trusted)
  UNION ALL SELECT 1, r.name, r.relowner FROM relation r WHERE r.is_foreign
  UNION ALL SELECT 2, 'the function strongroom.' || quote_ident(p.proname), p.proowner FROM routine p WHERE p.is_foreign)
SELECT EXISTS (SELECT FROM space), EXISTS (SELECT FROM relation r WHERE r.relname = 'schema_version'),
  EXISTS (SELECT FROM relation r WHERE r.relname = 'vault'),
  c.what, quote_ident(pg_get_userbyid(c.role)), o.what, quote_ident(pg_get_userbyid(o.role)),
  quote_ident(pg_get_userbyid(d.datdba)), quote_ident(d.datname)
FROM pg_database d LEFT JOIN (SELECT * FROM code ORDER BY what LIMIT 1) c ON true
LEFT JOIN (SELECT * FROM owned ORDER BY rank, what LIMIT 1) o ON true
WHERE d.datname = current_database()`;

/**
 * Asks before anything of the schema is used: the catalog alone is read. @throws StartError for code of a role that is not
 * trusted
 */
export async function readOwners(client: Pick<PoolClient, "query">): Promise<SchemaOwners> {
  const { rows } = await client.query<(string | null)[]>({ text, values: [bodies], rowMode: "array" });
  const [schema, version, vault, code, coder, what, role, owner, database] = rows[0] ?? [];
  if (code)
    throw new StartError(
      `the role ${coder} has put code into the schema strongroom that would run with the rights of this user (the ${code}): remove it, and find out who uses that role`,
    );
  const foreign = what && role && owner && database ? { what, role, owner, database } : null;
  return { schemaExists: schema === "t", hasVersionTable: version === "t", hasVaultTable: vault === "t", foreign };
}

/** Returns the problem and its remedy for a schema that holds a vault. */
export function ownerProblem({ what, role, owner, database }: ForeignOwner): StoreProblem {
  return {
    message: `${ownershipText(what, role)} could run with the rights of a server`,
    remedy: `as a superuser, run  REASSIGN OWNED BY ${role} TO ${owner}  in it; or, if you trust the role, ALTER DATABASE ${database} OWNER TO ${role}`,
  };
}

/** Returns the error for a schema that holds no vault. */
export function foreignOwnerError({ what, role, owner, database }: ForeignOwner): StartError {
  const remedy = `as a superuser, run  DROP SCHEMA strongroom CASCADE  in it, and create it with  AUTHORIZATION ${owner}`;
  return new StartError(
    `${ownershipText(what, role)} would run with the rights of this user: ${remedy}; or, if you trust the role, ALTER DATABASE ${database} OWNER TO ${role}`,
  );
}

function ownershipText(what: string, role: string): string {
  return `${what} in the database belongs to the role ${role}, whose code`;
}
