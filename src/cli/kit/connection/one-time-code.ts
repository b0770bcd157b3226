/** The current one-time code of a secret, or of the secret `totp` in the folder of its name. */
import { type OneTimeCode, type StrongroomClient, StrongroomError } from "../../../client/client.js";
import { noSecretsAt } from "./secrets.js";

/** `import` stores an item's fields in a folder, beside which may be its password: `otp web/site` means `web/site/totp`. @throws CommandFailure notFound; StrongroomError */
export async function codeHereOrInside(client: StrongroomClient, path: string): Promise<OneTimeCode> {
  const here = await codeOrRefusal(client, path);
  if (!(here instanceof StrongroomError) && here.isUrl) return here; // a password may also be valid base32
  const inside = await codeOrRefusal(client, `${path}/totp`);
  if (!(inside instanceof StrongroomError)) return inside;
  if (!(here instanceof StrongroomError)) return here;
  if (here.code === "NOT_FOUND" && inside.code === "NOT_FOUND") throw await noSecretsAt(client, [path]);
  throw here.code === "NOT_FOUND" ? inside : here;
}

/** Returns the refusal of a secret that is missing or no seed, or that the token does not cover. */
async function codeOrRefusal(client: StrongroomClient, path: string): Promise<OneTimeCode | StrongroomError> {
  try {
    return await client.oneTimeCode(path);
  } catch (error) {
    const isRefusal =
      error instanceof StrongroomError && ["NOT_FOUND", "BAD_REQUEST", "FORBIDDEN"].includes(error.code);
    if (isRefusal) return error;
    throw error;
  }
}
