/** `GET /v1/secrets`: the list, streamed in parts where it is long. */
import type { Request, Response } from "express";
import { VaultError } from "../../errors.js";
import type { ListQuery } from "../../vault/lister.js";
import type { Service } from "../endpoint.js";
import { visibleRanges } from "../permission.js";
import { contextOf } from "../request-context.js";
import { parseQuery } from "../request-target.js";
import { sendBytes, sendParts } from "../responses.js";

export async function list({ vault }: Service, req: Request, res: Response): Promise<void> {
  const query = listQuery(contextOf(req).target.query);
  const parts = vault.secrets.list({ ...query, ...visibleRanges(req) });
  const { pieces, last } = (await parts.next()).value ?? { pieces: [], last: true };
  if (last) sendBytes(res, 200, pieces);
  else await sendParts(res, pieces, parts);
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
