/** Scenario beyond the queue of derivations: immediate 429 with Retry-After, and no other failure. */

import { passphrase } from "../../test/support/server.js";
import { type Answer, mustStatus, send } from "../../test/support/test-client.js";
import type { Outcome } from "../outcome.js";
import { type Spread, spreadOf } from "../statistics.js";
import type { StrongroomSubject } from "../subjects.js";
import { timed } from "./starts.js";

/** One runs and 16 wait; the others are refused. */
const atOnce = 40;
const room = 17;

export async function beyondTheQueue({ server }: StrongroomSubject): Promise<Outcome> {
  const times = Array.from({ length: atOnce });
  await Promise.all(times.map(() => mustStatus(server))); // opens the connections
  const statuses = await Promise.all(times.map(() => timed(() => mustStatus(server))));
  const body = { passphrase };
  const answers = await Promise.all(
    times.map(() => timed(() => send(server, { method: "POST", path: "/v1/unlock", body }))),
  );
  const refused = answers.filter(({ value }) => isRefusal(value));
  const unlocked = answers.filter(({ value }) => value.status === 200);
  const other = answers.length - refused.length - unlocked.length;
  const slowest = (some: readonly { readonly ms: number }[]) => exactly(Math.max(...some.map(({ ms }) => ms)));
  return {
    scenario: `${atOnce} unlocks at once`,
    series: [],
    findings: [
      {
        what: "answered 429 with Retry-After",
        value: exactly(refused.length),
        unit: "",
        target: { atLeast: atOnce - room },
      },
      { what: "answered neither so nor 200", value: exactly(other), unit: "", target: { atMost: 0 } },
      { what: "slowest of as many statuses at once", value: slowest(statuses), unit: "ms" },
      { what: "slowest 429", value: slowest(refused), unit: "ms" },
      { what: "slowest 200", value: slowest(unlocked), unit: "ms" },
    ],
  };
}

function isRefusal({ status, headers }: Answer): boolean {
  return status === 429 && Number(headers["retry-after"]) > 0;
}

function exactly(value: number): Spread {
  return spreadOf([value]);
}
