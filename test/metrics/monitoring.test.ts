/** docs/monitoring: the alert rules and the dashboard against the metrics that a server exports. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, send } from "../../tools/rig/test-client.js";
import { mustScrape, namesIn, type Scrape } from "../support/scrape.js";

type Rule = { readonly alert: string; readonly expr: string };
type Panel = { readonly title: string; readonly targets: readonly { readonly expr: string }[] };

const rulesFile = "docs/monitoring/alerts.yml";
const { groups } = parse(readFileSync(rulesFile, "utf8")) as { groups: readonly { rules: readonly Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboardText = readFileSync("docs/monitoring/dashboard.json", "utf8");
const { panels } = JSON.parse(dashboardText) as { panels: readonly Panel[] };
const queries = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Labels that Prometheus itself adds. */
const addedLabels = ["instance", "job", "le"];

describe("the alert rules and the dashboard", () => {
  let scrape: Scrape;
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
    await send(fresh, { path: "/v1/secrets/a" });
    scrape = await mustScrape(fresh);
  });

  it("five rules at least, and a dashboard with 12 panels or more, are there", () => {
    expect(server().url).to.be.a("string");
    expect(rules).to.have.lengthOf.at.least(5);
    expect(panels).to.have.lengthOf.at.least(12);
  });

  for (const [name, query] of queries)
    it(`${name} uses only metrics and labels that are exported: ${query}`, () => {
      const names = query.match(/\b(?:strongroom|process)_\w+/g) ?? [];
      for (const metric of names) expect([...namesIn(scrape)]).to.include(metric);
      expect(names.length > 0 || query.startsWith("up{")).to.equal(true);
      const labels = [...query.matchAll(/(\w+)=~?"|by \(([^)]+)\)/g)].flatMap(
        ([, one, many]) => one ?? many?.split(", "),
      );
      for (const label of labels) expect([...addedLabels, ...labelsIn(scrape)]).to.include(label);
    });

  it("the rules and the dashboard use every counter of failures", () => {
    const all = queries.map(([, query]) => query).join("\n");
    for (const name of namesIn(scrape))
      if (/errors|failures|lockouts|restarts|gaps/.test(name)) expect(all).to.contain(name);
  });

  it("promtool, which is in Debian's package prometheus, accepts the rules and the dashboard", function () {
    const dashboard = join(temporaryDirectory(), "dashboard.yml");
    const recorded = queries.map(([, query], n) => ({
      record: `query_${n}`,
      expr: query.replaceAll("$__rate_interval", "5m"),
    }));
    writeFileSync(dashboard, JSON.stringify({ groups: [{ name: "dashboard", rules: recorded }] })); // which is also YAML
    const args = ["check", "rules", rulesFile, dashboard];
    const { error, status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8" });
    needs(this, error === undefined, "promtool");
    expect(status, stdout + stderr).to.equal(0);
  });
});

function labelsIn({ series }: Scrape): readonly string[] {
  return series.flatMap((one) => [...one.matchAll(/(\w+)="/g)].map(([, label = ""]) => label));
}
