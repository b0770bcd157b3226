/** The review page: trades its code for a token, and shows what the server says. No markup is made from text. */

const secondsShown = 300;
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

function showFacts(facts) {
  showList("keys", [
    ["Front end", `${facts.keys.frontEnd} keys`],
    ["Key worker", `${facts.keys.keyWorker} key`],
  ]);
  element("last-prove").textContent = textOfProve(facts.lastProve);
  const slots = facts.slots.map(({ id, kind, label, createdAt, cost }) => [id, kind, label, createdAt, cost]);
  showTable("slots", ["Id", "Kind", "Label", "Created", "Cost of a guess"], slots);
  const tokens = facts.tokens.map((each) => [
    each.name,
    each.can.join(", "),
    each.paths.join(", ") || "all paths",
    each.expiresAt ?? "never",
    each.lastUsedAt ?? "never",
  ]);
  showTable("tokens", ["Name", "Scopes", "Paths", "Expires", "Last used"], tokens);
  const weaknesses = facts.weaknesses.length > 0 ? facts.weaknesses : ["No protection is missing."];
  element("weaknesses").replaceChildren(...weaknesses.map((text) => make("li", text)));
  element("version").textContent = `Strongroom ${facts.version} on Node ${facts.node}`;
  showTable(
    "files",
    ["File", "SHA-256"],
    facts.files.map(({ name, sha256 }) => [name, sha256]),
  );
}

function textOfProve(last) {
  if (last === null) return "No strongroom prove has run on this server yet.";
  const minutes = Math.max(0, Math.round((Date.now() - Date.parse(last.at)) / 60_000));
  const age =
    minutes < 120
      ? `${minutes} minutes`
      : minutes < 2880
        ? `${Math.round(minutes / 60)} hours`
        : `${Math.round(minutes / 1440)} days`;
  const verdicts = {
    holds: `every one of its ${last.checks} checks held`,
    fails: `${last.failed} of its ${last.checks} checks failed`,
    unknown: "it could not check everything",
  };
  return `The last strongroom prove ran ${age} ago: ${verdicts[last.verdict]}.`;
}

function verdictOf({ records, firstSeq, covered, problemCount }) {
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
  element("audit-verdict").textContent = verdict === null ? unchecked : verdictOf(verdict);
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

const ms = (value) => (value === null ? "none" : `${value.toFixed(2)} ms`);

function showSigns(latest) {
  signs.push(latest);
  if (signs.length > secondsShown) signs.shift();
  showList("vitals", [
    ["Requests in the last second", String(latest.requests)],
    ["Get, p50 and p99", `${ms(latest.getP50)}, ${ms(latest.getP99)}`],
    ["Event-loop delay, p99", ms(latest.eventLoopP99)],
    ["Key worker, p99", ms(latest.keyWorkerP99)],
    ["Derivations running, waiting", `${latest.derivationsRunning}, ${latest.derivationsWaiting}`],
    ["Connections", String(latest.connections)],
    ["Memory", `${Math.round(latest.rss / 2 ** 20)} MiB`],
  ]);
  draw();
}

/** Latencies on a scale up to the highest, at least 20 ms; derivations as bars behind them. */
function draw() {
  const canvas = element("strip");
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const step = width / secondsShown;
  const x = (i) => width - (signs.length - i) * step;
  const highest = Math.max(20, ...signs.flatMap(({ eventLoopP99, getP99 }) => [eventLoopP99, getP99 ?? 0]));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const paint = getComputedStyle(document.querySelector("#legend .derivation")).color;
  context.clearRect(0, 0, width, height);
  context.fillStyle = paint || colour("--derivation");
  for (const [i, { derivationsRunning, derivationsWaiting }] of signs.entries()) {
    const bar = (height / 17) * (derivationsRunning + derivationsWaiting);
    context.globalAlpha = 0.4;
    context.fillRect(x(i), height - bar, step, bar);
  }
  context.globalAlpha = 1;
  for (const [name, value] of [
    ["delay", (each) => each.eventLoopP99],
    ["get", (each) => each.getP99],
  ]) {
    context.strokeStyle = getComputedStyle(document.querySelector(`#legend .${name}`)).color;
    context.lineWidth = 2;
    context.beginPath();
    for (const [i, each] of signs.entries())
      context.lineTo(x(i), height - ((value(each) ?? 0) / highest) * (height - 4) - 2);
    context.stroke();
  }
}

/** Reads lines until the stream ends, which ends the token as well. */
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
  showList("keys", [
    ["Front end", "0 keys"],
    ["Key worker", "0 keys"],
  ]);
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
    const { unlocks, durationMs } = await call("POST", "/v1/review/storm", { passphrase });
    result.textContent = `${unlocks} unlocks took ${(durationMs / 1000).toFixed(1)} s.`;
  } catch (error) {
    result.textContent = error.message;
  }
}

async function start() {
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (code === "") return end("This page needs a code: run  strongroom review");
  ({ token } = await call("POST", "/v1/review/token", { code }));
  const watching = watch();
  element("lock").disabled = false;
  element("lock").addEventListener("click", () => lock().catch((error) => say(error.message)));
  element("storm").addEventListener("submit", storm);
  const facts = await call("GET", "/v1/review");
  showFacts(facts);
  await showAudit(facts.audit);
  say("Connected. This page ends after 15 minutes.");
  await watching;
  if (token !== null) end("The server has ended this page: run  strongroom review  again.");
}

start().catch((error) => end(error.message));
