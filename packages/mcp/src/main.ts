/** `strongroom-mcp`: a server of the Model Context Protocol on standard input and output. `strongroom mcp` starts it. */
import { parseArgs } from "node:util";
import { StrongroomClient } from "../../../src/client/client.js";
import { Broker } from "./broker.js";
import { StdioTransport } from "./stdio.js";
import { toolServer } from "./tools.js";

const usage = `usage: strongroom-mcp [--use PATH]... [--allow-host HOST]...
Start it with  strongroom mcp , which describes the flags.
`;

/** The command that runs programs in the sandbox: `strongroom mcp` names itself. */
const strongroom = process.env["STRONGROOM_COMMAND"]?.split("\n") ?? ["strongroom"];

try {
  const { values } = parseArgs({
    options: { use: { type: "string", multiple: true }, "allow-host": { type: "string", multiple: true } },
  });
  const scope = { paths: values.use ?? [], allowHosts: values["allow-host"] ?? [] };
  const client = new StrongroomClient();
  const broker = new Broker(client, scope);
  const ending = new AbortController();
  const server = toolServer({ client, broker, scope, strongroom, ending: ending.signal });
  // Clients close the input and then send signals: none of them may end the process before the token is revoked.
  const end = () => {
    if (ending.signal.aborted) return;
    ending.abort();
    void broker.end().finally(() => client.close().finally(() => process.exit()));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
  server.server.onclose = end;
  process.stdin.once("end", end);
  process.stdout.on("error", end); // the client is gone
  server.server.onerror = (error) => {
    if (error.message === "a message is too long") process.stderr.write(`strongroom-mcp: ${error.message}\n`);
  };
  await server.connect(new StdioTransport(process.stdin, process.stdout));
} catch (error) {
  process.stderr.write(`strongroom-mcp: ${error instanceof Error ? error.message : "failed"}\n${usage}`);
  process.exitCode = 2;
}
