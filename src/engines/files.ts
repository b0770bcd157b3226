/** Engine of the files in a home. */
import { systemFiles } from "../files/durable.js";
import { homeAt, openHome } from "../files/home.js";
import { FileStore } from "../storage/files/file-store.js";
import { currentGeneration } from "../storage/files/generations.js";
import type { Engine } from "./engine.js";

export const engine: Engine = {
  async serve({ home, files, claimed, clock, log }) {
    const store = await FileStore.open(home.vault, files, claimed, clock);
    const missing = "the directory of the secrets was missing and an empty one was made: secrets in it are lost";
    if (store.madeSecrets) log.warn({ event: "secrets-missing", hint: missing });
    if (store.foreignFiles > 0) log.warn({ event: "foreign-files", count: store.foreignFiles, hint: "not touched" });
    return {
      store,
      announce: (announcement) => store.announce(announcement),
      release: async () => {}, // by its close
    };
  },

  async openUnserved(home, _passwordFile, { creates }) {
    return creates ? FileStore.open((await openHome(home)).vault) : FileStore.openExisting(homeAt(home).vault);
  },

  /** The claim lasts until the snapshot is no longer needed, since a start would remove it. */
  async openClaimed(home) {
    const store = await FileStore.openExisting(homeAt(home).vault);
    return store && { store, close: () => store.close() };
  },

  async header(home) {
    return (await currentGeneration(systemFiles, homeAt(home).vault))?.header ?? null;
  },

  database: null,
};
