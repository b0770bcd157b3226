/** Engine of a PostgreSQL database, which any number of servers share, each with a home of its own. */
import { join } from "node:path";
import { missingAsNull } from "../files/durable.js";
import { openHome } from "../files/home.js";
import { createLog } from "../log.js";
import { claimVault } from "../storage/files/claim.js";
import { openDatabase, openQueries } from "../storage/postgres/open-database.js";
import { type DatabaseEngine, type Engine, refuseServed } from "./engine.js";

const silent = createLog("error", () => {}, Date.now);

/** Enough for the concurrent reads and writes of maintenance. */
const storeConnections = 8;

export const databaseEngine: DatabaseEngine = {
  open(url, storePasswordFile, { creates }) {
    const settings = { store: url, storePasswordFile, storeConnections, snapshotsAt: null };
    return openDatabase({ ...settings, isServer: false, creates }, silent);
  },

  openQueries: (url, passwordFile) => openQueries(url, passwordFile, silent),
};

export const engine: Engine = {
  async serve({ settings, home, files, claimed, log, clock }) {
    const claim = await claimVault(home.vault, files);
    try {
      claimed();
      const hasFiles = (await missingAsNull(files.lstat(join(home.vault, "current")))) !== null;
      const role = { snapshotsAt: home.vault, isServer: true, creates: true, clock };
      const store = await openDatabase({ ...settings, store: settings.store ?? "", ...role }, log);
      const hint =
        "the home also has a vault of files, which is not served: strongroom migrate copies it to a database";
      if (hasFiles) log.warn({ event: "unused-vault", hint });
      return { store, announce: claim.announce, release: claim.release };
    } catch (error) {
      await claim.release();
      throw error;
    }
  },

  async openUnserved(url, passwordFile, mode) {
    const store = await databaseEngine.open(url, passwordFile, mode);
    try {
      await refuseServed(store);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  },

  /** Other servers may use the database at the same time. */
  async openClaimed(home, url, storePasswordFile) {
    const { vault } = await openHome(home);
    const claim = await claimVault(vault);
    try {
      const role = { snapshotsAt: vault, isServer: false, creates: false };
      const store = await openDatabase({ store: url, storePasswordFile, storeConnections, ...role }, silent);
      return { store, close: () => store.close().finally(claim.release) };
    } catch (error) {
      await claim.release();
      throw error;
    }
  },

  async header(url, passwordFile) {
    const store = await databaseEngine.open(url, passwordFile, { creates: false });
    return store.header().finally(() => store.close());
  },

  database: databaseEngine,
};
