/**
 * Refusal to send the database's password to a server that has not shown that it is the database: in clear, or as an MD5 that
 * can be replayed or guessed. Any program that listens on the port would get it. SCRAM proves both sides and is always allowed, TLS
 * protects the other methods, and a Unix socket belongs to a directory of its owner.
 */
import type { EventEmitter } from "node:events";
import type { Client, ClientConfig } from "pg";
import { StartError } from "../../errors.js";

type ClientClass = new (config?: string | ClientConfig) => Client;

const refused = ["authenticationCleartextPassword", "authenticationMD5Password"];

/** Returns the client for connections without TLS over TCP. */
export function guardedClient(Base: ClientClass): ClientClass {
  return class extends Base {
    constructor(config?: string | ClientConfig) {
      super(config);
      const connection = Reflect.get(this, "connection") as EventEmitter;
      const refuse = () => Reflect.set(this, "password", throwUnprotected);
      for (const method of refused) connection.on(method, refuse); // before the client's own listeners, which send it
    }
  };
}

/** In place of the password, which the client asks for when it is about to send it. */
function throwUnprotected(): never {
  const problem = "the database asks for the password in clear or as MD5, without TLS";
  throw new StartError(`${problem}: use scram-sha-256 in pg_hba.conf, or TLS (sslmode=verify-full)`);
}
