/** `strongroom service`: the server as the user's service, by systemd or launchd. */
import { Argument, type Command } from "commander";
import { definitions, formatDefault } from "../../config/definitions.js";
import { nonEmpty, onlyForActions, shownDuration } from "../kit/args/args.js";
import { warnOfUnknownVariables } from "../kit/args/settings-flags.js";
import { withHome } from "../kit/connection/server.js";
import { exitCodes } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printable, printJson, printRows, report, withOutput } from "../kit/output.js";
import {
  installKeyring,
  installService,
  isInstalled,
  isRunning,
  serviceFile,
  uninstallService,
} from "../service/install.js";
import { type ServiceManager, serviceManager } from "../service/manager.js";
import { planService } from "../service/plan.js";

type Flags = OutputFlags & {
  readonly home?: string;
  readonly idleTimeout?: string;
  readonly print?: true;
  readonly keyring?: true;
};

const details = `
The service has the settings of the home's file (strongroom config). Those that
install sees as flags or STRONGROOM_ variables win over the file, at each start
of the service; it gets no token. A restarted server is locked. status exits 0
while the service runs, 4 when there is none, 10 when it does not run.`;

export function define(command: Command, io: Io): void {
  withHome(command)
    .description(
      "install makes the server a service of this user and starts it: with systemd on Linux, launchd on macOS. An " +
        "installed one is replaced and restarted. uninstall stops and removes it; status says whether it runs.",
    )
    .addArgument(new Argument("<action>", "what to do with the service").choices(["install", "uninstall", "status"]))
    .option(
      "--idle-timeout <time>",
      `install: when the vault locks without activity, such as 8h, or never (${formatDefault(definitions.idleTimeout)})`,
      nonEmpty,
    )
    .option("--keyring", "install: also serve the vault as the keyring of programs on the session bus")
    .option("--print", "install: only print the service manager's file");
  const install = ["install"];
  onlyForActions(withOutput(command), { print: install, home: install, idleTimeout: install, keyring: install });
  command.addHelpText("after", details).action((action, flags) => service(io, action, flags));
}

async function service(io: Io, action: string, flags: Flags): Promise<void> {
  const manager = serviceManager(io);
  if (action === "install") return install(io, manager, flags);
  if (action === "status") return status(io, manager, flags);
  await uninstallService(io, manager);
  return report(io, flags, { file: manager.file }, `the service is stopped, and ${manager.file} is removed`);
}

async function install(io: Io, manager: ServiceManager, flags: Flags): Promise<void> {
  const plan = await planService(io, flags.home, flags.idleTimeout);
  if (!flags.quiet) warnOfUnknownVariables(io);
  if (flags.print) return print(io, manager.file, serviceFile(manager, plan), flags);
  await installService(io, manager, plan);
  const keyring = flags.keyring ? await installKeyring(io, manager, plan) : [];
  const { idleTimeoutMs: ms } = plan;
  const locks = `it ${ms === 0 ? "never locks" : `locks after ${shownDuration(ms)}`} without activity (--idle-timeout)`;
  const next = `unlock the vault with  strongroom unlock; ${locks}; ${manager.hint}`;
  const text = `the service is installed and started (${[manager.file, ...keyring].join(", ")}): ${next}`;
  report(io, flags, { file: manager.file, ...(flags.keyring && { keyring }) }, text);
}

function print(io: Io, file: string, text: string, { json }: Flags): void {
  if (json) printJson(io, { file, text });
  else io.stdout.write(text);
}

async function status(io: Io, manager: ServiceManager, flags: Flags): Promise<void> {
  const { file } = manager;
  const installed = await isInstalled(manager);
  const running = installed && (await isRunning(io, manager));
  io.exitCode = exitCodes[running ? "ok" : installed ? "unreachable" : "notFound"];
  if (flags.json) return printJson(io, { installed, running, file });
  if (flags.quiet) return;
  const state = running ? "running" : `installed, but not running: its log says why: ${manager.log}`;
  printRows(io, `${printable(installed ? `the service is ${state} (${file})` : "no service is installed")}\n`);
}
