/**
 * `strongroom credential`: credentials in the form in which programs ask another program for them.
 * For AWS's credential_process and for kubectl's exec plugins; cargo and Terraform look for programs of their own.
 * A credential that has expired is an error, never an answer.
 */
import { Argument, type Command } from "commander";
import { mustBePath } from "../../cli/kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { parseJsonObject, type UnknownObject } from "../../cli/kit/prompts/input.js";

const details = `
aws prints what ~/.aws/config asks for, from a secret that is a JSON object with
accessKeyId, secretAccessKey and, where there is one, sessionToken:
  credential_process = strongroom credential aws cloud/aws
kubernetes prints an ExecCredential (client.authentication.k8s.io/v1), from a
JSON object with token, or with clientCertificateData and clientKeyData.

The credential expires at expiresAt of the JSON object, or of the secret.`;

export function define(command: Command, io: Io): void {
  command
    .description("Prints a credential in the form that aws or kubectl asks for.")
    .addArgument(new Argument("<form>", "who asks").choices(Object.keys(forms)))
    .argument("<path>", "the secret, a JSON object")
    .addHelpText("after", details);
  withConnection(command).action((form, path, flags) => credential(io, form, mustBePath(path), flags));
}

type Form = "aws" | "kubernetes";

async function credential(io: Io, form: Form, path: string, flags: ConnectionFlags): Promise<void> {
  const secret = await withClient(io, { ...flags, nonInteractive: true }, (client) => client.getBytes(path));
  try {
    const fields = new CredentialFields(path, parseObject(path, secret.reveal()));
    const expiresAt = validUntil(io, path, fields.optional("expiresAt") ?? secret.metadata.expiresAt);
    io.stdout.write(`${JSON.stringify(forms[form](fields, expiresAt))}\n`);
  } finally {
    secret.wipe();
  }
}

const forms: Readonly<Record<Form, (fields: CredentialFields, expiresAt: string | undefined) => object>> = {
  aws: (fields, expiresAt) => ({
    Version: 1,
    AccessKeyId: fields.text("accessKeyId"),
    SecretAccessKey: fields.text("secretAccessKey"),
    SessionToken: fields.optional("sessionToken"),
    Expiration: expiresAt,
  }),
  kubernetes: (fields, expiresAt) => ({
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    status: { ...kubernetesFields(fields), expirationTimestamp: expiresAt },
  }),
};

function kubernetesFields(fields: CredentialFields): object {
  const token = fields.optional("token");
  if (token !== undefined && fields.optional("clientKeyData") === undefined) return { token };
  const [clientCertificateData, clientKeyData] = [fields.text("clientCertificateData"), fields.text("clientKeyData")];
  return { token, clientCertificateData, clientKeyData };
}

/** Members of the secret, which errors name and never repeat. */
class CredentialFields {
  readonly #path: string;
  readonly #members: UnknownObject;

  constructor(path: string, members: UnknownObject) {
    this.#path = path;
    this.#members = members;
  }

  /** @throws CommandFailure usage */
  optional(name: string): string | undefined {
    const value = this.#members[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string" && value !== "") return value;
    throw new CommandFailure("usage", `${name} in ${printable(this.#path)} must be a text`);
  }

  /** @throws CommandFailure usage */
  text(name: string): string {
    const value = this.optional(name);
    if (value !== undefined) return value;
    throw new CommandFailure("usage", `${printable(this.#path)} has no ${name}: store a JSON object with it`);
  }
}

/** Returns the time in RFC 3339 without fractions, which each of the programs reads. @throws CommandFailure usage */
function validUntil(io: Io, path: string, expiresAt: string | undefined): string | undefined {
  if (expiresAt === undefined) return undefined;
  const time = Date.parse(expiresAt);
  const shown = printable(path);
  if (Number.isNaN(time))
    throw new CommandFailure("usage", `expiresAt of ${shown} must be a time such as 2026-03-01T12:00:00Z`);
  if (time > io.clock.now()) return new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
  throw new CommandFailure("usage", `the credential at ${shown} has expired: store a new one`);
}

/** @throws CommandFailure usage */
function parseObject(path: string, value: Uint8Array): UnknownObject {
  const parsed = parseJsonObject(Buffer.from(value.buffer, value.byteOffset, value.length).toString());
  if (parsed !== null) return parsed;
  throw new CommandFailure("usage", `${printable(path)} must be a JSON object`);
}
