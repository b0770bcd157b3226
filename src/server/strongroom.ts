/** Start of a server: home, claim on the vault, service. */
import { systemClock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import type { ClaimedStore } from "../engines/engine.js";
import { engineFor } from "../engines/engines.js";
import { StartError } from "../errors.js";
import { systemFiles } from "../files/durable.js";
import { problemOfFile } from "../files/file-problem.js";
import { openHome } from "../files/home.js";
import type { Dependencies, Strongroom } from "./server-handle.js";
import { openOrRelease } from "./stopping.js";

/** @throws StartError that says what to fix. */
export async function startStrongroom(settings: Settings, dependencies: Dependencies): Promise<Strongroom> {
  try {
    const around = { clock: systemClock, files: systemFiles, ...dependencies };
    const home = await openHome(settings.home, around.files);
    // Slow to load: a refused start does not wait for it, and a start that reads many names loads it at the same time.
    const claimed = () => void import("./service.js");
    const engine = await engineFor(settings.store ?? home.path);
    const opened = await engine.serve({ ...around, settings, home, claimed });
    return await openOrRelease({ close: () => closeStore(opened) }, async () => {
      const { serveStore } = await import("./service.js");
      return serveStore(opened, home, settings, around);
    });
  } catch (error) {
    throw startErrorFor(error);
  }
}

async function closeStore({ store, release }: ClaimedStore): Promise<void> {
  await store.close().finally(release);
}

/** An unexpected failure of a file operation still names the file. */
function startErrorFor(error: unknown): unknown {
  const problem = error instanceof StartError ? null : problemOfFile(error);
  return problem === null ? error : new StartError(`${problem}, then start again`);
}
