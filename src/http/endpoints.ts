/** Endpoints of the API. The rows stand in the file of their subject. */
import type { OperationId } from "../contract/operations.js";
import { auditRows } from "./audit.js";
import { checkRows } from "./check.js";
import type { Endpoint } from "./endpoint.js";
import { keyRows } from "./keys.js";
import { reviewRows } from "./review.js";
import { EndpointTable } from "./routes.js";
import { secretRows } from "./secrets.js";
import { serverRows } from "./server.js";
import { tokenRows } from "./tokens.js";
import { transitRows } from "./transit.js";
import { trashRows } from "./trash.js";
import { useRows } from "./uses.js";

export const endpoints: readonly Endpoint<OperationId>[] = [
  ...serverRows,
  ...keyRows,
  ...tokenRows,
  ...secretRows,
  ...trashRows,
  ...checkRows,
  ...transitRows,
  ...useRows,
  ...auditRows,
  ...reviewRows,
];

export const endpointTable = new EndpointTable(endpoints);
