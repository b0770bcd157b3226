/** Names of environment variables, made from the paths of secrets; those that no secret may choose; and shell quoting. */
import { CommandFailure } from "../lib/errors.js";
import { printable } from "../lib/output.js";

export type Named = { readonly name: string; readonly path: string };

const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function isVariableName(name: string): boolean {
  return variable.test(name);
}

/**
 * Returns a name for each path: its last segment, if that is a valid name; else the segment in capitals, with `_` for
 * characters that a name cannot have. Paths whose name is in `taken` are left out.
 * @throws CommandFailure usage or conflict, with every path concerned and the remedy
 */
export function namesFor(paths: readonly string[], taken: ReadonlySet<string>, remedy: string): Named[] {
  const named = paths.map((path) => ({ name: nameOf(path), path })).filter(({ name }) => !taken.has(name));
  const unusable = named.filter(({ name }) => !isVariableName(name));
  if (unusable.length > 0) {
    const rows = unusable.map(({ name, path }) => `${printable(path)} would be ${name}`);
    throw new CommandFailure("usage", `a variable name starts with a letter or _: ${rows.join("; ")}: ${remedy}`);
  }
  const steering = named.filter(({ name }) => steersPrograms(name));
  if (steering.length > 0) {
    const rows = steering.map(({ name, path }) => `${printable(path)} would set ${name}`);
    throw new CommandFailure("usage", `${rows.join("; ")}, which changes how programs run: ${remedy}`);
  }
  const rows = [...byName(named)].filter(([, paths]) => paths.length > 1);
  if (rows.length === 0) return named;
  const clashes = rows.map(([name, paths]) => `${paths.map(printable).join(" and ")} would all be ${name}`);
  throw new CommandFailure("conflict", `${clashes.join("; ")}: ${remedy}`);
}

function nameOf(path: string): string {
  const last = path.slice(path.lastIndexOf("/") + 1);
  return isVariableName(last) ? last : last.toUpperCase().replace(/[^A-Z0-9_]/gu, "_");
}

function byName(named: readonly Named[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const { name, path } of named) paths.set(name, [...(paths.get(name) ?? []), path]);
  return paths;
}

const exact = new Set(
  `PATH HOME IFS CDPATH ENV SHELL SHELLOPTS PS4 PROMPT_COMMAND GLOBIGNORE FPATH ZDOTDIR NULLCMD READNULLCMD TMPPREFIX
  GCONV_PATH LOCPATH NLSPATH GETCONF_DIR GLIBC_TUNABLES HOSTALIASES RES_OPTIONS RESOLV_HOST_CONF LOCALDOMAIN LIBPATH
  SHLIB_PATH TERMCAP TERMINFO TERMINFO_DIRS TERMPATH XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS
  NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NODE_REPL_EXTERNAL_MODULE ELECTRON_RUN_AS_NODE
  JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH JAVA_HOME MAVEN_OPTS GRADLE_OPTS
  PERLLIB PERLIO_DEBUG PHPRC PHP_INI_SCAN_DIR GEM_HOME GEM_PATH BUNDLE_GEMFILE DOTNET_STARTUP_HOOKS GOFLAGS GOROOT
  RUSTC RUSTC_WRAPPER RUSTFLAGS MAKEFLAGS MAKEFILES GNUMAKEFLAGS
  EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER SSH_ASKPASS SUDO_ASKPASS
  SSL_CERT_FILE SSL_CERT_DIR SSLKEYLOGFILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE`.split(/\s+/),
);

const families =
  /^(?:LD_|DYLD_|_RLD|LDR_|BASH|PYTHON|PERL5|RUBY|LUA_|GIT_|CORECLR_|COR_|ERL_|OPENSSL_|KRB5_|STRONGROOM_)/;

/** npm reads its settings in any case. */
const npmSettings = /^npm_config_/i;

export function steersPrograms(name: string): boolean {
  return exact.has(name) || families.test(name) || npmSettings.test(name);
}

/** Returns the text as one word of a shell, in single quotes, in which nothing is special. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the command that sets and exports the variables. The names must be valid, and the values without NUL. */
export function exportLine(variables: Iterable<readonly [name: string, value: string]>): string {
  const words = [...variables].map(([name, value]) => ` ${name}=${shellQuote(value)}`);
  return words.length === 0 ? "" : `export${words.join("")}\n`;
}
