/**
 * Request and response classes that already have Express's prototypes. Express sets the prototype of every request and
 * response, which makes V8 drop the object's hidden class; here it sets what is there already.
 */
import { IncomingMessage, ServerResponse } from "node:http";
import express, { type Express } from "express";

export type MessageClasses = {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
};

/** For a server's options; for one app only, because an app marks its prototypes as its own. */
export function createMessageClasses(): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {}
  Object.setPrototypeOf(AppRequest.prototype, express.request);
  Object.setPrototypeOf(AppResponse.prototype, express.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}

/** Makes the app use the prototypes of these classes. */
export function adoptMessageClasses(app: Express, { IncomingMessage, ServerResponse }: MessageClasses): void {
  for (const { prototype } of [IncomingMessage, ServerResponse]) {
    Object.defineProperty(prototype, "app", { value: app, configurable: true, enumerable: true, writable: true });
  }
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
}
