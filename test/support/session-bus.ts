/** A session bus of the tests' own, by dbus-daemon. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { collect, environment } from "../../tools/rig/process.js";

/** Whether this machine has the program. */
export function hasProgram(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** Starts the daemon; returns its socket, its address, and a runner of programs on this bus, which end with the test. */
export async function startSessionBus() {
  const path = join(temporaryDirectory(), "bus");
  const address = `unix:path=${path}`;
  const env = environment({ DBUS_SESSION_BUS_ADDRESS: address });
  const run = (...[program = "", ...args]: readonly string[]) => {
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], timeout: 110_000 });
    later(() => void child.kill("SIGKILL"));
    return collect(child);
  };
  const daemon = run("dbus-daemon", "--session", "--nofork", "--print-address=1", `--address=${address}`);
  while (daemon.stdout() === "") await sleep(20);
  return { path, address, run };
}
