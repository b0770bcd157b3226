/** What is used of prom-client's registry; its own types are for the whole package only. */
declare module "prom-client/lib/registry.js" {
  namespace Registry {
    type Metric = {
      readonly name: string;
      readonly help: string;
      readonly type: string;
      readonly values: readonly {
        readonly metricName: string;
        readonly labels: Readonly<Record<string, string>>;
        readonly value: number;
      }[];
    };
  }
  class Registry {
    getMetricsAsString(metric: { get(): Registry.Metric }): Promise<string>;
  }
  export = Registry;
}
