/** Unit of a user's service for systemd. */
import type { ServicePlan } from "./service-plan.js";

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

export function systemdUnit({ program, environment }: ServicePlan): string {
  const variables = Object.entries(environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`);
  return `[Unit]
Description=Strongroom secret vault

[Service]
${variables.join("")}ExecStart=${program.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}
Restart=on-failure
TimeoutStopSec=10
${hardening}

[Install]
WantedBy=default.target
`;
}

/** Quotes a word for a unit file, where a percent sign begins a specifier. */
function quoted(word: string): string {
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("\n", "\\n")}"`;
}
