/** Picture of a document's first session: a terminal whose lines appear one after another, as an SVG file. */
import { blocksIn } from "./document-files.js";

/** The picture at the top of README. */
export const pictureFile = "docs/session.svg";

const columns = 80;
/** Pixels. */
const [letter, lineHeight, margin] = [8.4, 21, 20];
/** Seconds: for a typed character, before a command, and before its output. */
const [keyTime, thinkingTime, workTime] = [0.04, 0.7, 0.3];

const style = `
rect { fill: #10151d }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #aeb9c7; white-space: pre }
.command { fill: #f4f7fb; font-weight: 600 }
.prompt { fill: #5fd38d }
@media (prefers-reduced-motion: no-preference) {
  text { animation: appear 0.01s backwards }
  .command { animation-name: type }
}
@keyframes appear { from { opacity: 0 } }
@keyframes type { from { clip-path: inset(0 100% 0 0) } to { clip-path: inset(0 -10% 0 0) } }
`;

/** Returns the picture of the first `console` block of a text. */
export function renderPicture(text: string): string {
  const session = blocksIn(text).find(({ language }) => language === "console")?.code ?? "";
  const shown: string[] = [];
  let row = 0;
  let time = 0;
  const add = (kind: string, line: string, indent = 0, delay = time, duration = "") => {
    const [x, y] = [margin + indent * letter, margin + row * lineHeight + 14];
    const timing = `animation-delay: ${delay.toFixed(2)}s${duration}`;
    shown.push(`<text class="${kind}" x="${x.toFixed(1)}" y="${y}" style="${timing}">${escaped(line)}</text>`);
  };
  for (const line of session.trimEnd().split("\n")) {
    if (line.startsWith("$ ")) {
      const command = line.slice(2);
      const typing = command.length * keyTime;
      add("prompt", "$");
      time += thinkingTime;
      const typed = `; animation-duration: ${typing.toFixed(2)}s; animation-timing-function: steps(${command.length})`;
      add("command", command, 2, time, typed);
      row++;
      time += typing + workTime;
    } else {
      for (const part of wrapped(line)) {
        add("output", part);
        row++;
      }
      if (line.endsWith(": ")) time += thinkingTime; // a hidden reply is typed
    }
  }
  const [width, height] = [Math.ceil(columns * letter) + 2 * margin, row * lineHeight + 2 * margin];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A first session with Strongroom in a terminal</title>
<style>${style}</style>
<rect width="${width}" height="${height}" rx="10"/>
${shown.join("\n")}
</svg>
`;
}

/** The pieces of a line as a terminal of 80 columns breaks it. */
function wrapped(line: string): readonly string[] {
  return line.match(new RegExp(`.{1,${columns}}`, "gu")) ?? [""];
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
