/** Table of the commands, in the order of the help. A command's file is loaded only when it is needed. */
import type { CommandRow } from "./program.js";

/** Puts rows below a heading of the help. */
function under(group: string, rows: readonly CommandRow[]): readonly CommandRow[] {
  return rows.map((row) => ({ ...row, group }));
}

// biome-ignore format: one line a command, so that they can be compared
export const commands: readonly CommandRow[] = [
  ...under("Secrets", [
    { name: "get", summary: "print the values of secrets", example: "get app/db/password", load: () => import("./commands/get.js") },
    { name: "put", aliases: ["set"], summary: "store a secret", example: "put app/db/password --type password", load: () => import("./commands/put.js") },
    { name: "otp", summary: "print a one-time code (TOTP)", example: "otp web/example/totp", load: () => import("./commands/otp.js") },
    { name: "generate", summary: "generate and store a random value", example: "generate app/session-key --length 40", load: () => import("./commands/generate.js") },
    { name: "edit", summary: "edit a secret's value in your editor", example: "edit app/config", load: () => import("./commands/edit.js") },
    { name: "describe", summary: "show or change type, description and expiry", example: "describe app/db/password --expires 90d", load: () => import("./commands/describe.js") },
    { name: "ls", summary: "list the paths of secrets", example: "ls app/ --long", load: () => import("./commands/ls.js") },
    { name: "find", summary: "search paths and descriptions", example: "find database", load: () => import("./commands/find.js") },
    { name: "browse", summary: "browse the vault in the terminal", example: "browse app/", load: () => import("../extras/browse/browse.js") },
    { name: "pick", summary: "choose a secret in a menu and copy its value", example: "pick --menu fzf", load: () => import("../extras/browse/pick.js") },
    { name: "mv", summary: "move or rename a secret or a folder", example: "mv app/ web/", load: () => import("./commands/mv.js") },
    { name: "cp", summary: "copy a secret or a folder", example: "cp app/db/password staging/db/password", load: () => import("./commands/cp.js") },
    { name: "rm", summary: "move secrets and folders to the trash", example: "rm -r app/ web/key", load: () => import("./commands/rm.js") },
    { name: "trash", summary: "list or destroy what is in the trash", example: "trash ls", load: () => import("./commands/trash.js") },
    { name: "history", summary: "list a secret's versions, or delete the earlier ones", example: "history app/db/password", load: () => import("./commands/history.js") },
    { name: "undo", summary: "go back to an earlier version, or undo a deletion", example: "undo app/db/password --to 3", load: () => import("./commands/undo.js") },
  ]),
  ...under("Programs and files", [
    { name: "run", summary: "run a command with secrets as environment variables", example: "run --prefix app/ -- node server.js", load: () => import("./commands/run.js") },
    { name: "inject", summary: "fill a template with secrets", example: "inject -i config.template -o config.yaml", load: () => import("./commands/inject.js") },
    { name: "import", summary: "import secrets from another program's file", example: "import --prefix app .env", load: () => import("./commands/import.js") },
    { name: "export", summary: "write secrets as plaintext", example: "export --format json --plaintext -o secrets.json", load: () => import("./commands/export.js") },
    { name: "allow", summary: "allow the project file to choose secrets", example: "allow", load: () => import("./commands/allow.js") },
  ]),
  ...under("Keys", [
    { name: "transit", summary: "create and manage keys that never leave the server", example: "transit create app/backups", load: () => import("./commands/transit.js") },
    { name: "encrypt", summary: "encrypt with a transit key", example: "encrypt app/backups < dump.sql > dump.enc", load: () => import("./commands/encrypt.js") },
    { name: "decrypt", summary: "decrypt with a transit key", example: "decrypt app/backups < dump.enc > dump.sql", load: () => import("./commands/decrypt.js") },
    { name: "sign", summary: "sign with a transit key", example: "sign app/releases release.tar.gz", load: () => import("./commands/sign.js") },
    { name: "verify", summary: "check a signature of a transit key", example: "verify app/releases release.tar.gz --signature release.sig", load: () => import("./commands/verify.js") },
    { name: "age", summary: "print recipients and identities of age", example: "age recipient age/me", load: () => import("../extras/age/age.js") },
    { name: "ssh-agent", summary: "serve keys to ssh and git", example: "ssh-agent -- git push", load: () => import("../extras/ssh-agent/ssh-agent.js") },
  ]),
  ...under("Vault", [
    { name: "init", summary: "create a vault with a new passphrase", example: "init", load: () => import("./commands/init.js") },
    { name: "unlock", summary: "unlock the vault with its passphrase or a key", example: "unlock", load: () => import("./commands/unlock.js") },
    { name: "lock", summary: "lock the vault and wipe its key from memory", example: "lock", load: () => import("./commands/lock.js") },
    { name: "passphrase", summary: "change the passphrase", example: "passphrase", load: () => import("./commands/passphrase.js") },
    { name: "key", summary: "create, list and delete keys that unlock the vault", example: "key create --label recovery", load: () => import("./commands/key.js") },
    { name: "rotate-key", summary: "replace the master key and re-seal everything", example: "rotate-key --keep recovery=recovery.key", load: () => import("./commands/rotate-key.js") },
    { name: "status", summary: "show whether the vault is unlocked", example: "status --json", load: () => import("./commands/status.js") },
  ]),
  ...under("Server", [
    { name: "serve", summary: "start the vault server", example: "serve --port 13100 --idle-timeout 8h", load: () => import("./commands/serve.js") },
    { name: "up", summary: "start the server in the background, where no service manager does", example: "up --idle-timeout 8h", load: () => import("./commands/up.js") },
    { name: "config", summary: "show and change the settings that stay", example: "config set audit all", load: () => import("./commands/config.js") },
    { name: "service", summary: "run the server as a service of this user", example: "service install", load: () => import("./commands/service.js") },
    { name: "review", summary: "open a page that shows the server at work", example: "review --print-url", load: () => import("./commands/review.js") },
    { name: "top", summary: "show requests, latency and load as they change", example: "top", load: () => import("./commands/top.js") },
    { name: "shutdown", summary: "lock the vault and stop the server", example: "shutdown", load: () => import("./commands/shutdown.js") },
    { name: "token", summary: "create, list, rotate and revoke access tokens", example: "token create ci --path app/ --ttl 30d --output ci.token", load: () => import("./commands/token.js") },
    { name: "use", summary: "bind secrets to hosts, so that programs use them unread", example: "use add app/api-key api.example.com --header x-api-key", load: () => import("./commands/use.js") },
    { name: "agent", summary: "run a program that uses secrets without reading them", example: "agent run --use app/api-key -- npm test", load: () => import("./commands/agent.js") },
    { name: "approve", summary: "approve requests of programs that run under agent run", example: "approve", load: () => import("./commands/approve.js") },
    { name: "mcp", summary: "serve coding agents: they use secrets and never see them", example: "mcp --use app/", load: () => import("../extras/mcp/mcp.js") },
    { name: "git-credential", summary: "give git its passwords and tokens", example: "git-credential get", load: () => import("../extras/git-credential/git-credential.js") },
    { name: "credentials", summary: "serve secrets on Unix sockets, for systemd", example: "credentials --dir creds app/db/password", load: () => import("../extras/credentials/credentials.js") },
    { name: "docker-credential", summary: "give docker the logins of its registries", example: "docker-credential list", load: () => import("../extras/docker-credential/docker-credential.js") },
    { name: "keyring", summary: "serve the vault as the keyring of programs", example: "keyring -- gh auth login", load: () => import("../extras/keyring/keyring.js") },
    { name: "audit", summary: "show and verify the record of who did what", example: "audit show --path app/ --since 2h", load: () => import("./commands/audit.js") },
    { name: "trust", summary: "show how other programs can trust the server", example: "trust", load: () => import("./commands/trust.js") },
    { name: "vault-env", summary: "print the environment of Vault's clients", example: "vault-env", load: () => import("./commands/vault-env.js") },
  ]),
  ...under("Maintenance", [
    { name: "doctor", summary: "check the vault's files and fix what is safe to fix", example: "doctor --open", load: () => import("./commands/doctor.js") },
    { name: "check", summary: "find weak, reused, breached, old and expiring secrets", example: "check --breached pwned-passwords.txt", load: () => import("../extras/check/check.js") },
    { name: "scan", summary: "find values of the vault in files and git's history", example: "scan --staged", load: () => import("../extras/check/scan.js") },
    { name: "prove", summary: "check the running server's promises from outside", example: "prove --lock --with-canary", load: () => import("./commands/prove.js") },
    { name: "backup", summary: "back up the encrypted vault to a new file", example: "backup vault-2026-03.tar", load: () => import("./commands/backup.js") },
    { name: "restore", summary: "restore a backup into an empty home", example: "restore vault-2026-03.tar --home /srv/strongroom", load: () => import("./commands/restore.js") },
    { name: "migrate", summary: "copy the vault between files and a database", example: "migrate --from /srv/vault --to postgres://sr@db.example.org/vault", load: () => import("./commands/migrate.js") },
  ]),
  ...under("Other", [
    { name: "completion", summary: "print a shell completion script", example: "completion bash > strongroom.bash", load: () => import("./commands/completion.js"), needsAll: true },
    { name: "version", summary: "print the version", example: "version --json", load: () => import("./commands/version.js") },
  ]),
  { name: "overview", summary: "", load: () => import("./commands/overview.js"), hidden: true },
  { name: "flags", summary: "describe the connection flags", load: () => import("./commands/flags.js"), hidden: true },
  { name: "complete-paths", summary: "", load: () => import("../extras/complete-paths/complete-paths.js"), hidden: true },
  { name: "age-plugin", summary: "", load: () => import("../extras/age/plugin.js"), hidden: true },
  { name: "agent-relay", summary: "", load: () => import("./commands/agent-relay.js"), hidden: true },
  { name: "run-environment", summary: "", load: () => import("./commands/run-environment.js"), hidden: true },
];
