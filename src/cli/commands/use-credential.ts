/** Flags of `strongroom use add` that say what a request gets of the secret, and how that is shown. */
import type { Command } from "commander";
import type { Use, UseRequest } from "../../client/client.js";
import { Problem } from "../../config/readers.js";
import { suggestion } from "../kit/args/args.js";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { type UseTemplate, useTemplates } from "./use-templates.js";

export type CredentialFlags = {
  readonly bearer?: true;
  readonly header?: string;
  readonly format?: string;
  readonly basic?: string;
  readonly sigv4?: { readonly service: string; readonly region: string };
  readonly template?: UseTemplate;
};

export const credentialFlags = ["bearer", "header", "format", "basic", "sigv4", "template"] as const;

export function withCredential(command: Command): Command {
  return command
    .option("--bearer", "send it as a bearer token, the default")
    .option("--header <name>", "send it in this header")
    .option("--format <text>", "the header's value, with {} for the secret; with --header, the secret alone by default")
    .option("--basic <user>", "send it as the password of this user (Basic authentication)")
    .option("--sigv4 <service/region>", "sign requests with it, an access key of AWS, such as s3/us-east-1", readSigV4)
    .option("--template <name>", "bind it as this service needs it, such as github", readTemplate);
}

function readSigV4(text: string): UseRequest["sigv4"] {
  const [, service, region] = /^([0-9a-z-]+)\/([0-9a-z-]+)$/.exec(text) ?? [];
  if (service !== undefined && region !== undefined) return { service, region };
  throw new Problem("SERVICE/REGION, such as s3/us-east-1");
}

function readTemplate(name: string): UseTemplate {
  const found = useTemplates.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = useTemplates.map((each) => each.name);
  throw new Problem(`a name that  strongroom use templates  lists${suggestion(name, names)}`);
}

/** Returns how the secret is sent; of a template also with which methods. @throws CommandFailure usage */
export function credentialFields({
  bearer,
  header,
  format,
  basic,
  sigv4,
  template,
}: CredentialFlags): Partial<UseRequest> {
  if ([bearer, header, basic, sigv4, template].filter((way) => way !== undefined).length > 1) {
    throw usage("--bearer, --header, --basic, --sigv4 and --template cannot be used together");
  }
  if (format !== undefined && header === undefined) throw usage("--format needs --header");
  if (header !== undefined) return { header, format: format ?? "{}" };
  if (basic !== undefined) return { basic };
  if (sigv4 !== undefined) return { sigv4 };
  if (template === undefined) return {};
  const methods = [...template.methods];
  return "basic" in template
    ? { basic: template.basic, methods }
    : { header: template.header, format: template.format, methods };
}

export function credentialText({ header, format, basic, sigv4 }: Omit<Use, "path">): string {
  if (sigv4 !== undefined) return `signed for ${sigv4.service} in ${sigv4.region}`;
  return basic === undefined ? `${header}: ${format ?? ""}` : `Basic authentication as ${printable(basic)}`;
}

export function usage(problem: string): CommandFailure {
  return new CommandFailure("usage", `${problem}: strongroom use --help shows more`);
}
