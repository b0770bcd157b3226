/**
 * The OpenAPI 3.1 document, built from tables. A new endpoint needs a row in the table of operations: the tests fail on a
 * response that the document does not describe, and on a described response that no test has received.
 */

import type { Manifest } from "../manifest.js";
import {
  commonHeaders,
  componentHeaders,
  componentResponses,
  errorResponses,
  type Group,
  groupsOf,
  taggedHeaders,
  unroutedResponses,
} from "./common-responses.js";
import { type Schema, schemaNamed } from "./json-schema.js";
import { componentSchemas } from "./named-schemas.js";
import type { Operation } from "./operation.js";
import { operations } from "./operations.js";
import { overview } from "./overview.js";
import { parameters } from "./parameters.js";

type ContractSettings = { readonly maxValueBytes: number };

export function openApiDocument({ version, description, license }: Manifest, settings: ContractSettings): Schema {
  return {
    openapi: "3.1.1",
    info: {
      title: "Strongroom",
      version,
      summary: description,
      description: overview(settings.maxValueBytes),
      contact: { name: "Strongroom" },
      license: { name: license, identifier: license },
    },
    servers: [
      {
        url: "https://{host}:{port}",
        description: "The server on this machine; it creates its certificate at the first start.",
        variables: {
          host: { default: "localhost", description: "A name or address of the server." },
          port: { default: "13100", description: "The port from the settings; the server prints it at start." },
        },
      },
    ],
    security: [{ token: [] }],
    tags: [
      { name: "audit", description: "The audit log: who did what, and when." },
      { name: "secrets", description: "Secrets under hierarchical paths." },
      { name: "server", description: "The server itself." },
      { name: "tokens", description: "Client tokens, for programs and people that need a part of the vault." },
      { name: "vault", description: "The vault as a whole: its state, its passphrase and its keys." },
    ],
    paths: paths(),
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description:
            "The root token that the server created at its first start, or was configured with; or a client token.",
        },
      },
      parameters,
      schemas: componentSchemas(settings.maxValueBytes),
      responses: componentResponses(operations.flatMap(groupsOfOperation)),
      headers: componentHeaders,
    },
    "x-unrouted": {
      description: "Responses to a request that matches no operation.",
      responses: unroutedResponses,
    },
  };
}

function paths(): Schema {
  const all: { [path: string]: { [method: string]: Schema } } = {};
  for (const operation of operations) {
    all[operation.path] = { ...all[operation.path], [operation.method]: described(operation) };
  }
  return all;
}

function described(operation: Operation): Schema {
  const {
    id,
    tag,
    summary,
    description,
    open,
    parameters: names = [],
    body,
    response,
    hasTag,
    mayBeUnchanged,
    unready,
  } = operation;
  const schema = typeof response.schema === "string" ? schemaNamed(response.schema) : response.schema;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(open && { security: [] }),
    ...(names.length > 0 && { parameters: names.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
    ...(body && { requestBody: { required: true, content: content(schemaNamed(body.schema), body.example) } }),
    responses: {
      "200": {
        description: response.description,
        headers: hasTag ? taggedHeaders : commonHeaders,
        content: content(schema, response.example, response.type),
      },
      ...(unready && {
        "503": { description: unready, headers: commonHeaders, content: content(schema, response.example) },
      }),
      ...(mayBeUnchanged && {
        "304": { description: "The secret still has one of the tags.", headers: taggedHeaders },
      }),
      ...errorResponses(groupsOfOperation(operation)),
    },
  };
}

function groupsOfOperation({ open, anyToken, errors }: Operation): Group[] {
  const withToken = open ? [] : (["UNAUTHORIZED", "RATE_LIMITED", "UNAVAILABLE"] as const);
  const withScope = open || anyToken ? [] : (["FORBIDDEN"] as const);
  return groupsOf(["BAD_REQUEST", ...withToken, ...withScope, ...errors]);
}

function content(schema: Schema, example: Schema | string, type = "application/json"): Schema {
  return { [type]: { schema, example } };
}
