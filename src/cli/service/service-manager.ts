/** The user's service manager: where its file of a service is, and its commands. */
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { CommandFailure } from "../session/exit-codes.js";
import type { CommandLine } from "../session/programs.js";
import { agentLabel, launchAgent } from "./launch-agent.js";
import type { ServicePlan } from "./service-plan.js";
import { systemdUnit } from "./systemd-unit.js";

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
  /** Ends the message about an installation. */
  readonly hint: string;
};

/** @throws CommandFailure usage on a system without one that is supported */
export function serviceManager(platform: NodeJS.Platform = process.platform): ServiceManager {
  if (platform === "linux") return systemd();
  if (platform === "darwin") return launchd();
  throw new CommandFailure("usage", "services are supported with systemd and launchd only: run  strongroom serve");
}

const unit = "strongroom.service";

function systemd(): ServiceManager {
  const configuration = process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config");
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
    hint: "it ends with your session unless you run  loginctl enable-linger",
  };
}

function launchd(): ServiceManager {
  const file = join(homedir(), "Library", "LaunchAgents", `${agentLabel}.plist`);
  const domain = `gui/${userInfo().uid}`;
  const target = `${domain}/${agentLabel}`;
  return {
    program: "launchctl",
    file,
    text: (plan) => launchAgent(plan, join(homedir(), "Library", "Logs", "strongroom.log")),
    install: [["launchctl", "bootstrap", domain, file]],
    beforeRemoval: [["launchctl", "bootout", target]],
    afterRemoval: [],
    // What has ended stays loaded.
    isRunning: ["sh", "-c", `launchctl print ${target} | grep -q "state = running"`],
    isLoaded: ["launchctl", "print", target],
    hint: "its log is in ~/Library/Logs/strongroom.log",
  };
}
