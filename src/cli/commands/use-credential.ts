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
  readonly githubApp?: string;
  readonly installation?: string;
  readonly api?: string;
  readonly oauth?: string;
  readonly clientId?: string;
  readonly scope?: string;
  readonly sigv4?: { readonly service: string; readonly region: string };
  readonly template?: UseTemplate;
};

export const credentialFlags = [
  ...["bearer", "header", "format", "basic", "template"],
  ...["githubApp", "installation", "api", "oauth", "clientId", "scope", "sigv4"],
];

export function withCredential(command: Command): Command {
  return command
    .option("--bearer", "send it as a bearer token, the default")
    .option("--header <name>", "send it in this header")
    .option("--format <text>", "the header's value, with {} for the secret; with --header, the secret alone by default")
    .option("--basic <user>", "send it as the password of this user (Basic authentication)")
    .option("--github-app <id>", "send a token of this app of GitHub, whose private key it is")
    .option("--installation <id>", "the app's installation, with --github-app")
    .option("--api <url>", "the API that issues the token, where it is not the usual one, with --github-app")
    .option("--oauth <url>", "send an access token that this token endpoint issues for it, a refresh token")
    .option("--client-id <id>", "the client's id, with --oauth")
    .option("--scope <list>", "scopes to ask for, separated by spaces, with --oauth")
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
export function credentialFields(flags: CredentialFlags): Partial<UseRequest> {
  const { sigv4, template } = flags;
  atMostOne(flags, ["bearer", "header", "basic", "sigv4", "template"]);
  atMostOne(flags, ["githubApp", "oauth", "sigv4", "template"]);
  if (template !== undefined) return templateFields(template);
  return {
    ...placeFields(flags),
    ...githubFields(flags),
    ...oauthFields(flags),
    ...(sigv4 !== undefined && { sigv4 }),
  };
}

function atMostOne(flags: CredentialFlags, names: readonly (keyof CredentialFlags)[]): void {
  if (names.filter((name) => flags[name] !== undefined).length <= 1) return;
  const [last, ...others] = names.map((name) => `--${name === "githubApp" ? "github-app" : name}`).reverse();
  throw usage(`${others.reverse().join(", ")} and ${last} cannot be used together`);
}

function templateFields(template: UseTemplate): Partial<UseRequest> {
  const methods = [...template.methods];
  return "basic" in template
    ? { basic: template.basic, methods }
    : { header: template.header, format: template.format, methods };
}

function placeFields({ header, format, basic }: CredentialFlags): Partial<UseRequest> {
  if (format !== undefined && header === undefined) throw usage("--format needs --header");
  if (header !== undefined) return { header, format: format ?? "{}" };
  return basic === undefined ? {} : { basic };
}

function githubFields({ githubApp: appId, installation, api }: CredentialFlags): Partial<UseRequest> {
  if (appId !== undefined && installation !== undefined)
    return { githubApp: { appId, installation, ...(api !== undefined && { api }) } };
  if (appId === undefined && installation === undefined && api === undefined) return {};
  throw usage("--github-app and --installation need each other");
}

function oauthFields({ oauth: tokenUrl, clientId, scope }: CredentialFlags): Partial<UseRequest> {
  if (tokenUrl !== undefined && clientId !== undefined)
    return { oauth: { tokenUrl, clientId, ...(scope !== undefined && { scope }) } };
  if (tokenUrl === undefined && clientId === undefined && scope === undefined) return {};
  throw usage("--oauth and --client-id need each other");
}

/** Returns what a request gets, and where. */
export function credentialText({ header, format, basic, githubApp, oauth, sigv4 }: Omit<Use, "path">): string {
  if (sigv4 !== undefined) return `signed for ${sigv4.service} in ${sigv4.region}`;
  const place = basic === undefined ? `${header}: ${format ?? ""}` : `Basic authentication as ${printable(basic)}`;
  if (githubApp !== undefined) return `${place}, with a token of app ${githubApp.appId} of GitHub`;
  return oauth === undefined ? place : `${place}, with a token of ${oauth.tokenUrl}`;
}

export function usage(problem: string): CommandFailure {
  return new CommandFailure("usage", `${problem}: strongroom use --help shows more`);
}
