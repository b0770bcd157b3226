/** Start of a server: home, claim on the vault, service. */
import type { Settings } from "../config/definitions.js";
import { StartError } from "../errors.js";
import { systemFiles } from "../files/durable.js";
import { problemOfFile } from "../files/file-problem.js";
import { openHome } from "../files/home.js";
import { FileStore } from "../storage/files/file-store.js";
import { openOrRelease } from "./release.js";
import type { Strongroom, Surroundings } from "./server-handle.js";

/** @throws StartError that says what to fix. */
export async function startStrongroom(settings: Settings, surroundings: Surroundings): Promise<Strongroom> {
  try {
    const files = surroundings.files ?? systemFiles;
    const home = await openHome(settings.home, files);
    // Slow to load: a start that is refused does not wait for it, and one that reads many names does so meanwhile.
    const store = await FileStore.open(home.vault, files, () => void import("./service.js"), surroundings.clock);
    return await openOrRelease(store, async () => {
      const { serveStore } = await import("./service.js");
      return serveStore(store, home, settings, surroundings);
    });
  } catch (error) {
    throw startErrorFor(error);
  }
}

/** An unexpected failure of a file operation still names the file. */
function startErrorFor(error: unknown): unknown {
  const problem = error instanceof StartError ? null : problemOfFile(error);
  return problem === null ? error : new StartError(`${problem}, then start again`);
}
