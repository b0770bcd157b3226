/** Servers in the tests' own process: real TLS, files and key worker; clock, file operations and cost can be injected. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../src/config/definitions.js";
import { readSettings } from "../../src/config/settings.js";
import type { FileOperations } from "../../src/files/durable.js";
import { createLog } from "../../src/log.js";
import type { Dependencies, Strongroom } from "../../src/server/server-handle.js";
import { startStrongroom } from "../../src/server/strongroom.js";
import { later, shared } from "./clean-up.js";
import { lightFiles } from "./light-files.js";
import { keepCertificate, lastingHome, preparedHome } from "./prepared-home.js";

export const passphrase = "correct horse battery staple";

export type TestServer = Strongroom & {
  /** Requests of the tests go over the Unix socket. */
  readonly overSocket?: boolean;
  readonly home: string;
  readonly token: string;
  readonly certificate: string;
  /** The whole log, at level debug. */
  readonly logged: () => string;
};

export type TestOptions = Partial<Settings> & Partial<Omit<Dependencies, "log">>;

/** Starts a server on a free port, in a temporary home unless one is given; stopped when the test ends. */
export async function startTestServer(options: TestOptions = {}): Promise<TestServer> {
  const { clock, files, limits, brokerLimits, observer, ...overrides } = options;
  const settings = {
    ...testSettings(files),
    home: options.home ?? (clock ? await lastingHome() : preparedHome()),
    ...overrides,
  };
  const lines: string[] = [];
  const log = createLog("debug", (line) => lines.push(line), Date.now);
  const replaced = {
    ...(clock && { clock }),
    files: files ?? lightFiles,
    ...(limits && { limits }),
    ...(brokerLimits && { brokerLimits }),
    ...(observer && { observer }),
  };
  const strongroom = await startStrongroom(settings, { log, minScryptLogN: testScryptLogN, ...replaced });
  later(() => strongroom.stop());
  if (!clock) keepCertificate(settings.home, strongroom.certificateFile);
  return {
    ...strongroom,
    home: settings.home,
    token: settings.token ?? readFileSync(join(settings.home, "token"), "utf8").trim(),
    certificate: readFileSync(strongroom.certificateFile, "utf8"),
    logged: () => lines.join(""),
  };
}

/** Stops the server, and starts another on its home. */
export async function restarted(server: TestServer, options: TestOptions = {}): Promise<TestServer> {
  await server.stop();
  return startTestServer({ home: server.home, ...options });
}

/** Options for tests that change files under a running server: it reads them each time. */
export const uncached: TestOptions = { cacheBytes: 0 };

/** Below 14, the lowest that any setting allows: the tests derive thousands of keys. */
export const testScryptLogN = 10;

/** Options for a home that a command or another process also reads. */
export const realScryptCost: TestOptions = { scryptLogN: 14 };

/**
 * The defaults, but for a free port, a cheap derivation and no Unix socket. With file operations of the test's own nothing is
 * audited unless it asks for it: tests count them.
 */
export function testSettings(files?: FileOperations): Settings {
  const audit = { audit: files === undefined ? "all" : "off" };
  return { ...readSettings({ home: "unused", port: "0", socket: "off", ...audit }, {}), scryptLogN: testScryptLogN };
}

/** One server for all tests of a `describe`; `prepare` runs once after its start. */
export function shareTestServer(
  options: TestOptions = {},
  prepare?: (server: TestServer) => Promise<unknown>,
): () => TestServer {
  return shared(async () => {
    const server = await startTestServer(options);
    await prepare?.(server);
    return server;
  });
}

/** Starts a server for commands, with the Unix socket, which costs less than TLS. */
export function startLocalServer(options: TestOptions = {}): Promise<TestServer> {
  return startTestServer(options.files === undefined ? { socket: null, ...options } : options);
}

/** Like `shareTestServer`, for commands. */
export function shareLocalServer(
  options: TestOptions = {},
  prepare?: (server: TestServer) => Promise<unknown>,
): () => TestServer {
  return shareTestServer({ socket: null, ...options }, prepare);
}
