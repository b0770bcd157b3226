/**
 * Environment variables that steer shells, loaders and interpreters: who sets one runs code in the program, or replaces
 * what it trusts. A secret's name in the vault, which an import may have taken from elsewhere, must not choose one. The
 * core is what sudo removes (env_delete in sudoers(5)) and the dynamic loader ignores in privileged programs (ld.so(8)).
 */
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
