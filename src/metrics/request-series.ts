/** Series of the requests: route, method and status, each from a closed set, by an index that is computed without a text. */
import { statusOf } from "../errors.js";
import type { Series } from "./instruments.js";

const unknownRoute = "unknown";
const methods = ["GET", "PUT", "POST", "DELETE"] as const;
const otherMethod = methods.length;
const methodCount = methods.length + 1;

/** 0: the client disconnected before its request was complete. */
const statuses = [...new Set([0, 200, 304, ...Object.values(statusOf)])].sort((a, b) => a - b);
const otherStatus = statuses.length;
const statusCount = statuses.length + 1;

export class RequestSeries {
  readonly #routes: readonly string[];
  readonly #indexOfRoute: ReadonlyMap<string, number>;
  readonly #indexOfMethod = new Map<string, number>(methods.map((method, index) => [method, index]));
  readonly #indexOfStatus = new Map<number, number>(statuses.map((status, index) => [status, index]));

  /** `routes`: the patterns of all endpoints. */
  constructor(routes: readonly string[]) {
    this.#routes = [unknownRoute, ...routes];
    this.#indexOfRoute = new Map(this.#routes.map((route, index) => [route, index]));
  }

  /** By route and method. */
  get operations(): Series {
    const labels = (index: number) => ({
      route: this.#routes[Math.floor(index / methodCount)] ?? unknownRoute,
      method: methods[index % methodCount] ?? "other",
    });
    return { count: this.#routes.length * methodCount, labels, shown: false };
  }

  /** By route, method and status. */
  get outcomes(): Series {
    const { count, labels } = this.operations;
    const status = (index: number) => String(statuses[index % statusCount] ?? "other").replace(/^0$/, "none");
    const both = (index: number) => ({ ...labels(Math.floor(index / statusCount)), status: status(index) });
    return { count: count * statusCount, labels: both, shown: false };
  }

  operation(route: string, method: string): number {
    return (this.#indexOfRoute.get(route) ?? 0) * methodCount + (this.#indexOfMethod.get(method) ?? otherMethod);
  }

  /** `operation`: its index. */
  outcome(operation: number, status: number): number {
    return operation * statusCount + (this.#indexOfStatus.get(status) ?? otherStatus);
  }
}
