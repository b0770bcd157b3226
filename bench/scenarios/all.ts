/** All scenarios, in the order in which they run. */
import type { Scenario } from "../scenario.js";
import { audit } from "./audits.js";
import { batchGets, batchPuts } from "./batches.js";
import { clientToken } from "./client-tokens.js";
import { postgres } from "./databases.js";
import * as get from "./gets.js";
import { growth } from "./growth.js";
import * as list from "./lists.js";
import { maintenance } from "./maintenance.js";
import { manyConnections } from "./many-connections.js";
import { overwrite } from "./overwrites.js";
import * as put from "./puts.js";
import { rotation } from "./rotation.js";
import { scraped } from "./scraped.js";
import { start } from "./starts.js";
import { status } from "./statuses.js";
import { storm } from "./storm.js";

export const scenarios: readonly Scenario[] = [
  get.warm,
  get.connections,
  ...manyConnections,
  get.cold,
  put.small,
  overwrite,
  put.amongGets,
  scraped,
  status,
  get.large,
  put.large,
  list.hundred,
  list.all,
  audit,
  clientToken,
  batchGets,
  batchPuts,
  storm,
  rotation,
  start,
  growth,
  maintenance,
  postgres,
];
