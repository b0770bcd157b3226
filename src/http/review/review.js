/** The review page: trades its code for a token, and shows what the server says. No markup is made from text. */

/** What the chart shows: one minute while there is no more, then five. */
const spans = [
  { seconds: 60, ticks: [60, 45, 30, 15, 0], label: (seconds) => `−${seconds} s` },
  { seconds: 300, ticks: [300, 240, 180, 120, 60, 0], label: (seconds) => `−${seconds / 60} min` },
];
const signs = [];
let token = null;

const element = (id) => document.getElementById(id);

/** Escapes what is invisible or changes the order of the text around it. */
function visible(text) {
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
  return String(text).replace(hidden, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

function make(name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = visible(text);
  return made;
}

function say(text) {
  element("state").textContent = text;
}

async function call(method, path, body) {
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { "content-type": "application/json" }),
  };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  if (path === "/v1/vitals" && response.ok) return response;
  const json = await response.json();
  if (!response.ok) throw new Error(json.error);
  return json;
}

function showList(id, rows) {
  element(id).replaceChildren(...rows.flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
}

function showTable(id, titles, rows) {
  const head = make("thead");
  const titleRow = make("tr");
  for (const title of titles) {
    const cell = make("th", title);
    cell.scope = "col";
    titleRow.append(cell);
  }
  head.append(titleRow);
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    line.append(...row.map((text) => make("td", text)));
    body.append(line);
  }
  element(id).replaceChildren(head, body);
}

/** Numbers that are not known any more must not stay on the page. */
function showKeys({ frontEnd, keyWorker }) {
  element("front-end").textContent = frontEnd;
  element("key-worker").textContent = keyWorker;
  element("key-worker-name").textContent = keyWorker === 1 ? "key in the key worker" : "keys in the key worker";
}

function showFacts(facts) {
  showKeys(facts.keys);
  showSeal(facts.lastProve);
  const slots = facts.slots.map(({ id, kind, label, createdAt, cost }) => [
    id,
    kind,
    label,
    dayAndAge(createdAt),
    cost,
  ]);
  showTable("slots", ["Id", "Kind", "Label", "Created", "Cost of a guess"], slots);
  const tokens = facts.tokens.map((each) => [
    each.name,
    each.can.join(", "),
    each.paths.join(", ") || "all paths",
    each.expiresAt ? dayAndAge(each.expiresAt) : "never",
    each.lastUsedAt ? dayAndAge(each.lastUsedAt) : "never",
  ]);
  if (tokens.length > 0) showTable("tokens", ["Name", "Scopes", "Paths", "Expires", "Last used"], tokens);
  else element("tokens").replaceWith(make("p", "There is none: only the root token gives access."));
  const weaknesses = facts.weaknesses.length > 0 ? facts.weaknesses : ["No protection is missing."];
  element("weaknesses").replaceChildren(...weaknesses.map((text) => make("li", text)));
  element("version").textContent = `Strongroom ${facts.version} on Node ${facts.node}`;
  showTable(
    "files",
    ["File", "SHA-256"],
    facts.files.map(({ name, sha256 }) => [name, sha256]),
  );
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];

/** "3 minutes ago", "in 12 days", "now". */
function age(time) {
  const ms = Date.parse(time) - Date.now();
  const [unit, size] = units.find(([, each]) => Math.abs(ms) >= each) ?? ["minute", 0];
  if (size === 0) return "now";
  return new Intl.RelativeTimeFormat("en").format(Math.round(ms / size), unit);
}

/** "28 November 2026, 3 minutes ago". */
function dayAndAge(time) {
  const day = new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });
  return `${day}, ${age(time)}`;
}

/** The result of the last prove, which only users who can write in the home can change. */
function showSeal(last) {
  const verdicts = {
    holds: ["Proven", `every one of ${last?.checks} checks held`],
    fails: ["Not proven", `${last?.failed} of ${last?.checks} checks failed`],
    unknown: ["No verdict", "not everything could be checked"],
  };
  const [title, text] = last === null ? ["Not proven yet", "run  strongroom prove"] : verdicts[last.verdict];
  element("seal").className = `seal ${last?.verdict ?? "none"}`;
  const when = last === null ? "" : `strongroom prove, ${age(last.at)}: `;
  element("last-prove").replaceChildren(make("strong", title), make("span", `${when}${text}`));
}

function auditVerdict({ records, firstSeq, covered, problemCount }) {
  const checked = `The server has checked all ${records} records from ${firstSeq} on.`;
  const signed =
    covered > 0 ? `Checkpoints of this vault cover them up to ${covered}.` : "No checkpoint covers them yet.";
  return problemCount === 0
    ? `${checked} The chain is unbroken. ${signed}`
    : `${checked} ${problemCount} places do not match: run  strongroom audit verify`;
}

async function showAudit(verdict) {
  const unchecked =
    "The server has not checked the log, which is off, empty, unreadable or long: run  strongroom audit verify";
  element("audit-verdict").textContent = verdict === null ? unchecked : auditVerdict(verdict);
  element("audit-problems").replaceChildren(...(verdict?.problems ?? []).map((text) => make("li", text)));
  try {
    const { head, records } = await call("GET", "/v1/audit?limit=1000");
    const checkpoints = records.filter(({ event }) => event === "checkpoint").length;
    const seq = head ? `Head: record ${head.seq}, chain ${head.chain}. ` : "";
    element("audit").textContent = `${seq}${records.length} records read, ${checkpoints} checkpoints among them.`;
  } catch (error) {
    element("audit").textContent = error.message;
  }
}

const ms = (value) => (value === null ? "none" : `${value.toFixed(value < 10 ? 2 : 0)} ms`);

function showSigns(latest) {
  signs.push(latest);
  if (signs.length > 300) signs.shift();
  const storm =
    latest.stormGetP99 === null ? [] : [["In the storm, p99", stormText(latest.stormGetP99, latest.bareP99)]];
  showList("vitals", [
    ["Requests in the last second", String(latest.requests)],
    ["Get, p50 and p99", latest.getP99 === null ? "no gets" : `${ms(latest.getP50)}, ${ms(latest.getP99)}`],
    ...storm,
    ["Event-loop delay, p99", ms(latest.eventLoopP99)],
    ["Key worker, p99", latest.keyWorkerP99 === null ? "idle" : ms(latest.keyWorkerP99)],
    ["Derivations", `${latest.derivationsRunning} running, ${latest.derivationsWaiting} waiting`],
    ["Connections", String(latest.connections)],
    ["Memory", `${Math.round(latest.rss / 2 ** 20)} MiB`],
  ]);
  draw();
}

const stormText = (get, bare) => `get ${ms(get)}, bare server ${ms(bare)}`;

/** Sides of the chart's area, in pixels of the page: the right one follows its width. */
const area = { left: 56, right: 856, top: 40, bottom: 240 };
const most = 17; // of derivations: a storm has 16

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The next of 20, 50, 100, 200 … above the highest latency, so that the scale seldom changes. */
function scaleFor(highest) {
  for (let power = 10; ; power *= 10) for (const step of [2, 5, 10]) if (step * power >= highest) return step * power;
}

const series = [
  ["delay", ({ eventLoopP99 }) => eventLoopP99],
  ["bare", ({ bareP99 }) => bareP99],
  ["get", ({ stormGetP99, getP99 }) => stormGetP99 ?? getP99],
];

function timeSpan() {
  return spans.find(({ seconds }) => signs.length <= seconds) ?? spans.at(-1);
}

function x(secondsAgo) {
  return area.right - (secondsAgo * (area.right - area.left)) / timeSpan().seconds;
}

const ago = (i) => signs.length - 1 - i;

/** Axes in milliseconds, derivations and minutes; lines have a gap where nothing was measured. */
function draw() {
  const width = element("chart").clientWidth || 900;
  element("chart").setAttribute("viewBox", `0 0 ${width} 280`);
  area.right = width - 44;
  const values = signs.flatMap((each) => series.map(([, read]) => read(each) ?? 0));
  const scale = scaleFor(Math.max(0, ...values));
  const y = (value, highest) => area.bottom - (value / highest) * (area.bottom - area.top);
  const grid = [0, 0.5, 1].flatMap((part) => {
    const at = y(part, 1);
    const line = { x1: area.left, x2: area.right, y1: at, y2: at, class: "grid" };
    const left = drawn("text", { x: area.left - 8, y: at + 4, "text-anchor": "end" }, String(part * scale));
    const right = drawn("text", { x: area.right + 8, y: at + 4 }, String(Math.round(part * 16)));
    return [drawn("line", line), left, ...(part === 0 ? [left] : [right])];
  });
  const { ticks, label, seconds: longest } = timeSpan();
  const shown = ticks.filter((_, i) => width > 480 || (ticks.length - 1 - i) % 2 === 0);
  const times = shown.map((seconds) => {
    const anchor = seconds === longest ? "start" : seconds === 0 ? "end" : "middle";
    const at = { x: x(seconds), y: area.bottom + 28, "text-anchor": anchor };
    return drawn("text", at, seconds === 0 ? "now" : label(seconds));
  });
  const titles = [
    drawn("text", { x: area.left - 8, y: 22, "text-anchor": "end" }, "ms"),
    drawn("text", { x: area.right + 40, y: 22, "text-anchor": "end" }, "derivations"),
  ];
  const bars = signs.map(({ derivationsRunning, derivationsWaiting }, i) => {
    const top = y(Math.min(most, derivationsRunning + derivationsWaiting), 16);
    const width = (area.right - area.left) / timeSpan().seconds;
    return drawn("rect", { x: x(ago(i)) - width, y: top, width, height: area.bottom - top, class: "derivation" });
  });
  const paths = series.map(([name, read]) =>
    drawn("path", { d: pathThrough(read, (value) => y(value, scale)), class: name }),
  );
  const parts = [...grid, ...times, ...titles, ...bars, ...paths, ...(ended === null ? [] : endMark(ended))];
  element("chart").replaceChildren(element("chart-name"), ...parts);
}

addEventListener("resize", draw);

/** Why no more figures come; null while they do. */
let ended = null;

function endMark(why) {
  const line = { x1: area.right, x2: area.right, y1: area.top, y2: area.bottom, class: "ended" };
  const text = drawn("text", { x: area.right - 8, y: area.top + 24, "text-anchor": "end", class: "ended" }, why);
  return [drawn("line", line), text];
}

/** A value alone between two gaps is a dot. */
function pathThrough(read, y) {
  let isOpen = false;
  return signs
    .map((each, i) => {
      const value = read(each);
      const wasOpen = isOpen;
      isOpen = value !== null;
      if (value === null) return "";
      const at = `${x(ago(i)).toFixed(1)} ${y(value).toFixed(1)}`;
      return wasOpen ? `L${at}` : `M${at}h0.5L${at}`;
    })
    .join("");
}

/** The figures end here: what was true before is not known any more, or is known to be over. */
function endFigures(why) {
  ended = why;
  draw();
  showList("vitals", [["Figures", `ended at ${clockTime(Date.now())}: ${why}`]]);
}

function clockTime(time) {
  return new Date(time).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** Reads lines until the stream ends, which ends the token as well. @throws TypeError when the connection is lost */
async function watch() {
  const response = await call("GET", "/v1/vitals");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) showSigns(JSON.parse(line));
  }
}

function end(text) {
  token = null;
  say(text);
  for (const control of document.querySelectorAll("button, input")) control.disabled = true;
}

async function lock() {
  await call("POST", "/v1/lock");
  showLocked();
}

function showLocked() {
  showKeys({ frontEnd: 0, keyWorker: 0 });
  endFigures("locked");
  end("The vault is locked. This page has ended.");
}

async function storm(event) {
  event.preventDefault();
  const input = element("passphrase");
  const passphrase = input.value;
  input.value = "";
  const result = element("storm-result");
  result.textContent = "16 unlocks are running…";
  try {
    const { unlocks, durationMs, gets, getP99, bareP99 } = await call("POST", "/v1/review/storm", { passphrase });
    const beside =
      gets === 0
        ? "No get ran beside them: the vault has no secret, or the server no Unix socket."
        : `${gets} gets beside them, p99: ${stormText(getP99, bareP99)}.`;
    result.textContent = `${unlocks} unlocks took ${(durationMs / 1000).toFixed(1)} s. ${beside}`;
  } catch (error) {
    result.textContent = error.message;
  }
}

async function start() {
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (code === "") return end("This page needs a code: run  strongroom review");
  const granted = await call("POST", "/v1/review/token", { code });
  const { expiresAt } = granted;
  token = granted.token;
  const watching = watch().catch(() => {}); // a lost connection ends the page as the end of the stream does
  element("lock").disabled = false;
  element("lock").addEventListener("click", () => lock().catch((error) => say(error.message)));
  element("storm").addEventListener("submit", storm);
  const facts = await call("GET", "/v1/review");
  showFacts(facts);
  setInterval(() => showSeal(facts.lastProve), 60_000);
  await showAudit(facts.audit);
  say(`Connected. This page ends at ${clockTime(Date.parse(expiresAt))}.`);
  await watching;
  if (token !== null) await showEnd();
}

/** The status, which needs no token, says whether a lock has ended the page. */
async function showEnd() {
  token = null;
  showKeys({ frontEnd: 0, keyWorker: "–" });
  const status = await call("GET", "/v1/status").catch(() => null);
  if (status?.locked) return showLocked();
  endFigures("ended");
  end(
    status === null
      ? "The server cannot be reached: see  strongroom status"
      : "The server has ended this page: run  strongroom review  again.",
  );
}

start().catch((error) => end(error.message));
