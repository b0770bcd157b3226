/** Owns the list of scenarios, in the order in which they run. */
import type { Scenario } from "../scenario.js";
import { connections, getCold, getWarm } from "./get.js";
import { large, mixed, put } from "./put.js";
import { status } from "./status.js";

export const scenarios: readonly Scenario[] = [getWarm, connections, getCold, put, mixed, status, large];
