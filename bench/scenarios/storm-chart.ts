/** Chart of the unlock storm as SVG for light and dark pages: the slowest response of each tenth of a second. */

/** Milliseconds: the slowest response to the requests due in each tenth of a second; 0 when none was due. */
export type Timelines = {
  readonly status: readonly number[];
  readonly get: readonly number[];
  readonly busyStatus: readonly number[];
  readonly busyGet: readonly number[];
  /** Where the storm, or the busy process, begins. */
  readonly quietSeconds: number;
};

const width = 760;
const panel = { left: 56, right: 16, height: 150, gap: 46, top: 40 };
const plotWidth = width - panel.left - panel.right;
const ticks = [0.1, 1, 10, 100, 1000] as const;

const style = `
  text { font: 12px system-ui, sans-serif; fill: #57606a } .title { font-weight: 600; fill: #24292f }
  .grid { stroke: #d0d7de; stroke-width: 0.5 } .band { fill: #bf8700; opacity: 0.1 }
  .storm { fill: none; stroke: #0969da; stroke-width: 1.5 } .busy { fill: none; stroke: #8c959f; stroke-width: 1.2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #8d96a0 } .title { fill: #e6edf3 } .grid { stroke: #30363d } .storm { stroke: #4493f8 }
  }`;

export function drawStorm({ status, get, busyStatus, busyGet, quietSeconds }: Timelines): string {
  const seconds = Math.max(1, Math.round(Math.max(status.length, get.length) / 10));
  const height = panel.top + 2 * (panel.height + panel.gap);
  const caption =
    "slowest response in each tenth of a second, ms, one request every 5 ms — blue: 16 clients unlock; grey: a busy process";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${caption}">`,
    `<style>${style}</style>`,
    `<text x="${panel.left}" y="18">${caption}</text>`,
    drawPanel("GET /v1/status", panel.top, seconds, quietSeconds, status, busyStatus),
    drawPanel("GET /v1/secrets/:path", panel.top + panel.height + panel.gap, seconds, quietSeconds, get, busyGet),
    "</svg>\n",
  ].join("\n");
}

function drawPanel(
  title: string,
  top: number,
  seconds: number,
  quietSeconds: number,
  storm: readonly number[],
  busy: readonly number[],
): string {
  const x = (second: number) => panel.left + (plotWidth * second) / seconds;
  const y = (ms: number) => top + panel.height * (1 - (Math.log10(Math.min(1000, Math.max(0.1, ms))) + 1) / 4);
  const path = (figures: readonly number[]) =>
    figures
      .map((ms, i) => (ms > 0 ? `${x((i + 0.5) / 10).toFixed(1)} ${y(ms).toFixed(1)}` : ""))
      .filter((point) => point !== "")
      .map((point, i) => `${i === 0 ? "M" : "L"}${point}`)
      .join("");
  const bottom = top + panel.height;
  return [
    `<text class="title" x="${panel.left}" y="${top - 6}">${title}</text>`,
    `<rect class="band" x="${x(quietSeconds)}" y="${top}" width="${x(seconds) - x(quietSeconds)}" height="${panel.height}"/>`,
    ...ticks.map((ms) => `<path class="grid" d="M${panel.left} ${y(ms)}h${plotWidth}"/>`),
    ...ticks.map((ms) => `<text x="${panel.left - 8}" y="${y(ms) + 4}" text-anchor="end">${ms}</text>`),
    ...Array.from(
      { length: seconds + 1 },
      (_, second) => `<text x="${x(second)}" y="${bottom + 16}" text-anchor="middle">${second} s</text>`,
    ),
    `<path class="busy" d="${path(busy)}"/>`,
    `<path class="storm" d="${path(storm)}"/>`,
  ].join("\n");
}
