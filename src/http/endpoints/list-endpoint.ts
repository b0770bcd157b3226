/** `GET /v1/secrets`: the list, streamed in parts where it is long. */
import type { Request, Response } from "express";
import { VaultError } from "../../errors.js";
import { isSecretPath } from "../../paths/secret-path.js";
import type { ListPart, ListQuery } from "../../vault/list.js";
import type { Service } from "../endpoint.js";
import { visibleRanges } from "../permission.js";
import { contextOf, type RequestContext } from "../request-context.js";
import { parseQuery } from "../request-target.js";
import { sendBytes, sendParts } from "../responses.js";

export async function list({ vault }: Service, req: Request, res: Response): Promise<void> {
  const context = contextOf(req);
  const query = listQuery(context.target.query);
  context.prefix = canBeginPath(query.prefix) ? query.prefix : "";
  const parts = vault.secrets.list({ ...query, ...visibleRanges(req) });
  const { pieces, last, count } = (await parts.next()).value ?? { pieces: [], last: true, count: 0 };
  context.count = count;
  if (last) sendBytes(res, 200, pieces);
  else await sendParts(res, pieces, counted(parts, count, context));
}

/** DANGER: any other text must not get into the audit log; it may be a secret in the wrong place. */
function canBeginPath(prefix: string): boolean {
  return isSecretPath(prefix) || isSecretPath(`${prefix}x`);
}

/** Counts the secrets for the observers, from those of the first part on. */
async function* counted(
  parts: AsyncIterable<ListPart>,
  first: number,
  context: RequestContext,
): AsyncGenerator<ListPart, void, void> {
  let count = first;
  for await (const part of parts) {
    count += part.count;
    context.count = count;
    yield part;
  }
}

const maxListLimit = 1000;

function listQuery(query: string): ListQuery {
  const parameters = parseQuery(query, ["prefix", "after", "limit"]);
  const limit = parameters.get("limit");
  if (limit !== undefined && !/^(?:[1-9]\d{0,2}|1000)$/.test(limit)) {
    throw new VaultError("BAD_REQUEST", `the parameter limit must be a whole number from 1 to ${maxListLimit}`);
  }
  return {
    prefix: (parameters.get("prefix") ?? "").normalize("NFC"),
    after: (parameters.get("after") ?? "").normalize("NFC"),
    limit: limit === undefined ? null : Number(limit),
  };
}
