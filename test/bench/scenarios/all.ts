/** Owns the list of scenarios, in the order in which they run. */
import type { Scenario } from "../scenario.js";
import * as get from "./get.js";
import { growth } from "./growth.js";
import * as list from "./list.js";
import * as put from "./put.js";
import { start } from "./start.js";
import { status } from "./status.js";
import { storm } from "./storm.js";

export const scenarios: readonly Scenario[] = [
  get.warm,
  get.connections,
  get.cold,
  put.small,
  put.amongGets,
  status,
  get.large,
  put.large,
  list.hundred,
  list.all,
  storm,
  start,
  growth,
];
