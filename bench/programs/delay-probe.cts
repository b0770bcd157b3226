/**
 * Delay of the event loops of a measured server's threads: the age of a message when its thread takes it. Loaded with
 * --require into the main thread, and from there into every thread that the program starts, it listens; a thread of its
 * own sends the messages, at a fixed rate and with their moment inside. So no timer runs in the threads that are measured,
 * and a stall of one leaves no message out.
 */

type Pulse = { readonly sent: number };
type Order = { readonly order: "begin" | "report" };
type Delays = {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
};
type Report = { readonly thread: number; readonly delays: Delays };
type Question = { readonly ask: "watch-delay" | "delay" };

const threads = process.getBuiltinModule("node:worker_threads");
const { createHistogram } = process.getBuiltinModule("node:perf_hooks");
const { syncBuiltinESMExports } = process.getBuiltinModule("node:module");

const channelName = "strongroom-bench-delay";
const pulseMs = 5;
const channel = new threads.BroadcastChannel(channelName);
channel.unref();
const ages = createHistogram();

/** One clock for all threads. */
function moment(): number {
  return performance.timeOrigin + performance.now();
}

function listen(): void {
  channel.onmessage = (event: unknown) => take((event as { data: Pulse | Order | Report }).data);
}

function take(message: Pulse | Order | Report): void {
  if ("sent" in message) ages.record(Math.max(1, Math.round((moment() - message.sent) * 1000)));
  else if ("order" in message && message.order === "begin") ages.reset();
  else if ("order" in message) channel.postMessage({ thread: threads.threadId, delays: delays() } satisfies Report);
  else gathered.push(message);
}

/** In milliseconds. */
function delays(): Delays {
  const at = (percent: number) => ages.percentile(percent) / 1000;
  return { count: ages.count, p50: at(50), p99: at(99), p999: at(99.9), max: ages.max / 1000 };
}

const gathered: Report[] = [];
let pulseIsReady: Promise<void> | null = null;

/** Messages are sent between "watch-delay" and "delay". */
async function answer({ ask }: Question): Promise<object> {
  pulseIsReady ??= startPulse();
  await pulseIsReady;
  return ask === "watch-delay" ? begin() : report();
}

function begin(): object {
  ages.reset();
  channel.postMessage({ order: "begin" } satisfies Order);
  return {};
}

async function report(): Promise<object> {
  const main = delays();
  gathered.length = 0;
  channel.postMessage({ order: "report" } satisfies Order);
  while (gathered.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  return { main, worker: gathered[0]?.delays };
}

function startPulse(): Promise<void> {
  const thread = new OriginalWorker(__filename, { workerData: channelName, execArgv: [], env: {} });
  thread.unref();
  return new Promise((resolve) => thread.once("message", () => resolve()));
}

function pulse(): void {
  let timer: NodeJS.Timeout | undefined;
  channel.ref();
  channel.onmessage = (event: unknown) => {
    const { data } = event as { data: Pulse | Order | Report };
    clearInterval(timer);
    if ("order" in data && data.order === "begin") {
      timer = setInterval(() => channel.postMessage({ sent: moment() } satisfies Pulse), pulseMs);
    }
  };
  threads.parentPort?.postMessage("ready");
}

const OriginalWorker = threads.Worker;

/** As `Worker`, with this probe loaded before the program. */
class ProbedWorker extends OriginalWorker {
  constructor(file: string | URL, options: import("node:worker_threads").WorkerOptions = {}) {
    super(file, { ...options, execArgv: [...(options.execArgv ?? []), "--require", __filename] });
  }
}

if (threads.isMainThread) {
  listen();
  threads.Worker = ProbedWorker;
  syncBuiltinESMExports();
  process.on("message", (question: Question) => {
    if (question.ask !== "watch-delay" && question.ask !== "delay") return;
    void answer(question).then((found) => process.send?.({ answered: question.ask, ...found }));
  });
} else if (threads.workerData === channelName) pulse();
else listen();
