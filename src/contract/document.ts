/**
 * Owns the contract as one OpenAPI 3.1 document, put together from tables. Whoever adds an endpoint adds a row to the
 * operations; the contract test refuses every answer that has none, and every row whose answers no test has seen.
 */

import type { Manifest } from "../manifest.js";
import {
  commonHeaders,
  componentHeaders,
  componentResponses,
  errorResponses,
  type Group,
  groupsOf,
  unroutedResponses,
} from "./common-responses.js";
import { type Schema, schemaNamed } from "./json-schema.js";
import { componentSchemas } from "./named-schemas.js";
import { type Operation, operations } from "./operations.js";
import { overview } from "./overview.js";
import { parameters } from "./parameters.js";

export type ContractSettings = { readonly maxValueBytes: number };

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
        url: "https://localhost:{port}",
        description: "The server on this machine; its certificate is made at its first start.",
        variables: { port: { default: "13100", description: "As the server was told, or says when it starts." } },
      },
    ],
    security: [{ token: [] }],
    tags: [
      { name: "secrets", description: "Secrets, by hierarchical paths." },
      { name: "server", description: "The server itself." },
      { name: "vault", description: "The vault as a whole: its state and its passphrase." },
    ],
    paths: paths(),
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "The bearer token that the server made at its first start, or was given.",
        },
      },
      parameters,
      schemas: componentSchemas(settings.maxValueBytes),
      responses: componentResponses(operations.flatMap(groupsOfOperation)),
      headers: componentHeaders,
    },
    "x-unrouted": {
      description: "What is answered to a request that no operation matches.",
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
  const { id, tag, summary, description, open, parameters: names = [], body, answer } = operation;
  const schema = typeof answer.schema === "string" ? schemaNamed(answer.schema) : answer.schema;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(open && { security: [] }),
    ...(names.length > 0 && { parameters: names.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
    ...(body && { requestBody: { required: true, content: json(schemaNamed(body.schema), body.example) } }),
    responses: {
      "200": { description: answer.description, headers: commonHeaders, content: json(schema, answer.example) },
      ...errorResponses(groupsOfOperation(operation)),
    },
  };
}

function groupsOfOperation({ open, errors }: Operation): Group[] {
  const withToken = open ? [] : (["UNAUTHORIZED", "RATE_LIMITED", "UNAVAILABLE"] as const);
  return groupsOf(["BAD_REQUEST", ...withToken, ...errors]);
}

function json(schema: Schema, example: Schema): Schema {
  return { "application/json": { schema, example } };
}
