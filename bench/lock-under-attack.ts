/**
 * Time of `strongroom lock`, as a process, beside 2,000 hostile connections, each reopened once the server closes it, and a
 * lockout of loopback: `node dist/bench/lock-under-attack.js [rounds] [connections]`.
 */
import { connect } from "node:net";
import { StrongroomClient } from "strongroom/client";
import { run, type ServerProcess, startProcess } from "../test/support/process.js";
import { passphrase } from "../test/support/server.js";
import { mustInit, send } from "../test/support/test-client.js";
import { cleaningUp } from "./run-scenarios.js";
import { spreadOf } from "./statistics.js";

const [rounds = 100, connections = 2_000] = process.argv.slice(2).map(Number);

/** Keeps a connection without a request open until the process ends. */
function occupy(port: number): void {
  const socket = connect({ host: "127.0.0.1", port }).on("error", () => {});
  socket.on("close", () => setTimeout(occupy, 100, port).unref());
  socket.unref();
}

/** Milliseconds, start of the process included. */
async function timeCommand(name: string, { home }: ServerProcess): Promise<number> {
  const started = performance.now();
  const { code, stderr } = await run([name], { STRONGROOM_HOME: home });
  if (code !== 0) throw new Error(stderr);
  return performance.now() - started;
}

await cleaningUp(async () => {
  const server = await startProcess();
  await mustInit(server);
  for (let i = 0; i < 10; i++) await send(server, { path: "/v1/secrets", token: "wrong" });
  for (let i = 0; i < connections; i++) occupy(server.port);
  const owner = new StrongroomClient({ home: server.home });
  const times: number[] = [];
  const idle: number[] = [];
  for (let i = 0; i < rounds; i++) {
    idle.push(await timeCommand("version", server));
    await owner.unlock(passphrase);
    times.push(await timeCommand("lock", server));
  }
  await owner.close();
  const { median, max } = spreadOf(times);
  const within = times.filter((ms) => ms <= 1_000).length;
  process.stdout.write(
    `strongroom lock beside ${connections} hostile connections and a lockout of loopback: ${within} of ${rounds} within 1 s, ` +
      `median ${median.toFixed(0)} ms, slowest ${max.toFixed(0)} ms; strongroom version takes ${spreadOf(idle).median.toFixed(0)} ms\n`,
  );
});
