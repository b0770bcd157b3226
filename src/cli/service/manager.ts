/** The user's service manager: where its file of a service is, and its commands. */
import { join } from "node:path";
import { xdgDirectory } from "../../config/xdg.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import type { CommandLine } from "../kit/programs/programs.js";
import type { ServicePlan } from "./plan.js";

export type ServiceManager = {
  readonly program: string;
  readonly file: string;
  readonly text: (plan: ServicePlan) => string;
  /** Each is run in turn. An update stops what runs first. */
  readonly install: readonly CommandLine[];
  readonly beforeRemoval: readonly CommandLine[];
  readonly afterRemoval: readonly CommandLine[];
  /** Succeeds while the service runs. */
  readonly isRunning: CommandLine;
  /** Succeeds while it must be stopped before its file is removed. */
  readonly isLoaded: CommandLine;
  /** Links that an installation has made, which a removal without the manager leaves. */
  readonly links: readonly string[];
  /** Where the log is, or what shows it. */
  readonly log: string;
  /** Ends the message about an installation. */
  readonly hint: string;
  /** The keyring's files beside it: the unit, and what D-Bus starts it by; none where there is no session bus. */
  readonly keyring: readonly { readonly file: string; readonly text: (plan: ServicePlan) => string }[];
  /** Is run after these files have changed. */
  readonly reload: readonly CommandLine[];
};

/** @throws CommandFailure usage on a system without a supported service manager */
export function serviceManager(io: Io): ServiceManager {
  if (io.platform === "linux") return systemd(io);
  if (io.platform === "darwin") return launchd(io);
  throw new CommandFailure("usage", "services are supported with systemd and launchd only: run  strongroom up");
}

const unit = "strongroom.service";
const keyringUnit = "strongroom-keyring.service";
const keyringName = "org.freedesktop.secrets";

function systemd(io: Io): ServiceManager {
  const configuration = xdgDirectory(io.env, "XDG_CONFIG_HOME") ?? join(io.homeDirectory(), ".config");
  const data = xdgDirectory(io.env, "XDG_DATA_HOME") ?? join(io.homeDirectory(), ".local", "share");
  const userctl = (...args: string[]): CommandLine => ["systemctl", "--user", ...args];
  return {
    program: "systemctl",
    file: join(configuration, "systemd", "user", unit),
    text: systemdUnit,
    install: [userctl("daemon-reload"), userctl("enable", unit), userctl("restart", unit)],
    beforeRemoval: [userctl("disable", "--now", unit)],
    afterRemoval: [userctl("daemon-reload")],
    isRunning: userctl("is-active", "--quiet", unit),
    isLoaded: ["true"], // an enabled unit that does not run has its link
    links: [join(configuration, "systemd", "user", "default.target.wants", unit)],
    log: "journalctl --user -u strongroom",
    hint: "it ends with your session unless you run  loginctl enable-linger",
    keyring: [
      { file: join(configuration, "systemd", "user", keyringUnit), text: keyringService },
      { file: join(data, "dbus-1", "services", `${keyringName}.service`), text: keyringActivation },
    ],
    reload: [userctl("daemon-reload")],
  };
}

function launchd(io: Io): ServiceManager {
  const library = join(io.homeDirectory(), "Library");
  const file = join(library, "LaunchAgents", `${agentLabel}.plist`);
  const domain = `gui/${io.uid}`;
  const target = `${domain}/${agentLabel}`;
  return {
    program: "launchctl",
    file,
    text: (plan) => launchAgent(plan, join(library, "Logs", "strongroom.log")),
    install: [["launchctl", "bootstrap", domain, file]],
    beforeRemoval: [["launchctl", "bootout", target]],
    afterRemoval: [],
    // A service that has ended stays loaded.
    isRunning: ["sh", "-c", `launchctl print ${target} | grep -q "state = running"`],
    isLoaded: ["launchctl", "print", target],
    links: [],
    log: "~/Library/Logs/strongroom.log",
    hint: "its log is in ~/Library/Logs/strongroom.log",
    keyring: [],
    reload: [],
  };
}

/**
 * As hard as a user's manager can make it: what needs a mount namespace or a capability is for system services, see
 * docs/operations.md. MemoryDenyWriteExecute cannot be used, because V8 compiles code at run time.
 */
const hardening = `LimitCORE=0
MemorySwapMax=0
UMask=0077
NoNewPrivileges=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM`;

export function systemdUnit(plan: ServicePlan): string {
  return `[Unit]
Description=Strongroom secret vault

[Service]
${execution(plan)}Restart=on-failure
TimeoutStopSec=10
${hardening}

[Install]
WantedBy=default.target
`;
}

/** D-Bus starts it when a program asks for the keyring. */
function keyringService({ program, environment }: ServicePlan): string {
  const serving = [...program.slice(0, -1), "keyring", "--session"];
  return `[Unit]
Description=Strongroom as the keyring of programs
After=${unit}

[Service]
Type=dbus
BusName=${keyringName}
${execution({ program: serving, environment })}Restart=on-failure
${hardening}
`;
}

function keyringActivation({ program }: ServicePlan): string {
  const words = [...program.slice(0, -1), "keyring", "--session"].map(
    (word) => `"${word.replace(/["\\$`]/g, "\\$&")}"`,
  );
  return `[D-BUS Service]
Name=${keyringName}
Exec=${words.join(" ")}
SystemdService=${keyringUnit}
`;
}

function execution({ program, environment }: ServicePlan): string {
  const variables = Object.entries(environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`);
  const words = program.map((word) => quoted(word).replaceAll("$", "$$$$"));
  return `${variables.join("")}ExecStart=${words.join(" ")}\n`;
}

/** Quotes a word for a unit file, where a percent sign begins a specifier. */
function quoted(word: string): string {
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("\n", "\\n")}"`;
}

/** Name of the service for launchd. */
export const agentLabel = "org.strongroom.serve";

/** `log`: file for the server's log. */
export function launchAgent({ program, environment }: ServicePlan, log: string): string {
  const words = program.map((word) => `    <string>${escaped(word)}</string>\n`);
  const variables = Object.entries(environment).map(
    ([name, value]) => `    <key>${escaped(name)}</key>\n    <string>${escaped(value)}</string>\n`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${agentLabel}</string>
  <key>ProgramArguments</key>
  <array>
${words.join("")}  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join("")}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>HardResourceLimits</key>
  <dict>
    <key>Core</key>
    <integer>0</integer>
  </dict>
  <key>Umask</key>
  <integer>${0o077}</integer>
  <key>StandardErrorPath</key>
  <string>${escaped(log)}</string>
</dict>
</plist>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
