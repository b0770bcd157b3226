/**
 * Owns the classes of one server's requests and responses. Express gives each request and response a prototype of its
 * own; changing prototypes makes V8 forget what it knew of an object's shape. Ours have them from birth, so that what
 * Express sets is what is there already.
 */
import { IncomingMessage, ServerResponse } from "node:http";
import express, { type Express } from "express";

export type MessageClasses = {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
};

/** For a server's options. One app's alone: each app marks its prototypes as its own. */
export function createMessageClasses(): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {}
  Object.setPrototypeOf(AppRequest.prototype, express.request);
  Object.setPrototypeOf(AppResponse.prototype, express.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}

/** Makes the classes' prototypes those that the app gives out. */
export function adoptMessageClasses(app: Express, { IncomingMessage, ServerResponse }: MessageClasses): void {
  for (const { prototype } of [IncomingMessage, ServerResponse]) {
    Object.defineProperty(prototype, "app", { value: app, configurable: true, enumerable: true, writable: true });
  }
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
}
