/** Strongroom with room for more connections than a server takes by default, which no setting allows. */
import { readSettings } from "../../src/config/settings.js";
import { defaultLimits } from "../../src/http/listener.js";
import { createLog } from "../../src/log.js";
import { startStrongroom } from "../../src/server/strongroom.js";
import { mustHave } from "./listen.js";

const settings = readSettings({ home: mustHave("BENCH_HOME"), port: "0", idleTimeoutMs: "0" }, {});
const log = createLog("error", (line) => process.stderr.write(line), Date.now);
const limits = { ...defaultLimits, maxConnections: Number(mustHave("BENCH_CONNECTIONS")) };
const { url, port, tokenSource, certificateFile, vaultPath } = await startStrongroom(settings, { log, limits });

process.send?.({ url, port, tokenSource, certificateFile, vaultPath });
