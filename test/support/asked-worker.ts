/** Moments at which a key worker of this process is sent an operation: a latch for what a test does while it runs. */
import { MessagePort } from "node:worker_threads";
import { later } from "../../tools/rig/clean-up.js";
import type { Call } from "../../workers/protocol.js";

/** Resolves once a key worker has been sent the operation. Call it before the request. */
export function keyWorkerAsked(op: string): Promise<void> {
  const { postMessage } = MessagePort.prototype;
  const restore = () => {
    MessagePort.prototype.postMessage = postMessage;
  };
  later(restore);
  return new Promise((resolve) => {
    MessagePort.prototype.postMessage = function (this: MessagePort, ...args: Parameters<typeof postMessage>): void {
      postMessage.apply(this, args);
      const [, , requests] = Array.isArray(args[0]) ? (args[0] as unknown as Partial<Call>) : [];
      if (!requests?.some((request) => request.op === op)) return;
      restore();
      resolve();
    };
  });
}
