/** Service manager that started this process. */
import { readFileSync } from "node:fs";
import type { Io } from "../kit/io.js";
import { agentLabel } from "./manager.js";

/**
 * Returns the command that restarts this server, or null when it runs without a service manager. systemd says in
 * SYSTEMD_EXEC_PID which process it has started: the variable of a terminal's service, which its shells inherit, names another.
 */
export function restartCommand({ env, pid, uid }: Io): string | null {
  if (env["SYSTEMD_EXEC_PID"] === String(pid)) return systemdCommand(ownGroup());
  return env["XPC_SERVICE_NAME"] === agentLabel ? `launchctl kickstart -k gui/${uid}/${agentLabel}` : null;
}

/** Takes a control group, such as `/user.slice/user-1000.slice/user@1000.service/app.slice/strongroom.service`. */
export function systemdCommand(group: string): string {
  const unit = group.split("/").findLast((part) => part.endsWith(".service")) ?? "strongroom.service";
  const isOfUser = /\/user@\d+\.service\//.test(group);
  return `systemctl ${isOfUser ? "--user " : ""}restart ${unit}`;
}

/** Version 2 has one line; of version 1, systemd's own is named. */
function ownGroup(): string {
  try {
    return /^(?:0:|\d+:name=systemd):(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}
