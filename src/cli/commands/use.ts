/** `strongroom use`: the hosts that a secret may be used for through the broker. */
import { Argument, type Command, Option } from "commander";
import { type StrongroomClient, StrongroomError, type Use, type UseRequest } from "../../client/client.js";
import { Problem } from "../../config/readers.js";
import { onlyForActions, suggestion } from "../kit/args/args.js";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printable, printJson, printRows, report, sayIfEmpty, withResult } from "../kit/output.js";
import {
  type CredentialFlags,
  credentialFields,
  credentialFlags,
  credentialText,
  usage,
  withCredential,
} from "./use-credential.js";
import type { LoginFlags } from "./use-login.js";
import { type UseTemplate, useTemplates } from "./use-templates.js";

const actions = ["add", "login", "ls", "rm", "templates"] as const;
type Action = (typeof actions)[number];

type Flags = OutputFlags &
  ConnectionFlags &
  CredentialFlags & {
    readonly method?: readonly string[];
    readonly path?: readonly string[];
    readonly ask?: string;
    readonly private?: true;
    readonly name?: string;
    readonly port?: number;
  } & LoginFlags;

const details = `
A program that runs under strongroom agent run reaches these hosts, and the
secret is put into its requests on the way: nothing that it can read holds the
secret. add with the same host replaces the binding. Puts, versions and moves
keep bindings; a copy has none. login gets the refresh token of a binding with
--oauth: the server exchanges the code, and stores the token.

By default the secret is sent as  Authorization: Bearer VALUE. In --format, {}
stands for the value. In --path, * stands for characters within a segment and
** across segments. --template takes host, header and methods from a list of
services, which templates shows with the pages where credentials are made; the
other flags and another host, as of a server of your own, come before it.`;

export function define(command: Command, io: Io): void {
  const described = command
    .description("Binds secrets to hosts, so that programs can use them without reading them.")
    .usage("add|rm PATH HOST | login PATH [HOST] | ls | templates")
    .addArgument(new Argument("<action>", "add or rm a binding, ls them, log in, or list templates").choices(actions))
    .argument("[path]", "the secret's path; ls: the beginning of paths")
    .argument("[host]", "a DNS name or an IP address");
  withCredential(described)
    .option("--port <number>", "the host's port; default: 443", readPort)
    .option("--method <list>", "only these methods, separated by commas", readMethods)
    .option("--path <list>", "only these paths, separated by commas", splitList)
    .addOption(new Option("--ask <when>", "ask for approval: never, request, session, or once in a time such as 10m"))
    .option("--private", "allow private and loopback addresses")
    .option("--name <name>", "also serve it at the broker's route /r/NAME/, for programs that take a base URL")
    .option("--authorize <url>", "login: where to log in, or with --device to get a code, if the provider does not say")
    .option("--device", "login: enter a code on another machine")
    .addHelpText("after", details);
  const adds = [...credentialFlags, "port", "method", "path", "ask", "private", "name"].map((flag) => [flag, ["add"]]);
  const taken = Object.fromEntries([...adds, ["authorize", ["login"]], ["device", ["login"]]]);
  onlyForActions(withResult(withConnection(command)), taken).action((action, path, host, flags) =>
    use(io, action, path, host, flags),
  );
}

function splitList(text: string): string[] {
  return text.split(",").map((item) => item.trim());
}

function readPort(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new Problem("a port from 1 to 65535");
}

function readMethods(text: string): string[] {
  return splitList(text).map((method) => method.toUpperCase());
}

async function use(
  io: Io,
  action: Action,
  path: string | undefined,
  host: string | undefined,
  flags: Flags,
): Promise<void> {
  if (action === "templates") return listTemplates(io, path, flags);
  if (action === "ls") return listUses(io, path ?? "", host, flags);
  if (action === "login") return logInFor(io, path, host, flags);
  const to = host ?? flags.template?.host;
  if (path === undefined || to === undefined) throw usage(`${action} needs the secret's path and a host`);
  if (action === "add") return addUse(io, mustBePath(path), to, flags);
  const secret = mustBePath(path);
  await withClient(io, flags, (client) => removeUse(client, secret, to));
  report(io, flags, { path: secret, host: to }, `${secret} is no longer bound to ${to}`);
}

async function logInFor(io: Io, path: string | undefined, host: string | undefined, flags: Flags): Promise<void> {
  if (path === undefined) throw usage("login needs the secret's path");
  const { logIn } = await import("./use-login.js");
  const secret = mustBePath(path);
  const bound = await withClient(io, flags, (client) => logIn(io, client, secret, host, flags));
  report(io, flags, { path: secret, host: bound }, `the refresh token of ${secret} is stored`);
}

/** @throws CommandFailure notFound, with the hosts to which the secret is bound */
async function removeUse(client: StrongroomClient, path: string, host: string): Promise<void> {
  try {
    await client.removeUse(path, host);
  } catch (error) {
    if (!(error instanceof StrongroomError && error.code === "NOT_FOUND")) throw error;
    const { uses } = await client.listUses({ prefix: path });
    const hosts = uses.filter((each) => each.path === path).map((each) => each.host);
    const shown = printable(path);
    if (hosts.length === 0) {
      const problem = `${shown} is not bound to any host; strongroom use ls  lists the bindings`;
      throw new CommandFailure("notFound", problem);
    }
    const others = suggestion(host, hosts) || `: it is bound to ${hosts.join(", ")}`;
    throw new CommandFailure("notFound", `${shown} is not bound to ${printable(host)}${others}`);
  }
}

async function addUse(io: Io, path: string, host: string, flags: Flags): Promise<void> {
  const wanted = useRequest(host, flags);
  const added = await withClient(io, flags, (client) => client.setUse(path, wanted));
  const { ok: _, ...shown } = added;
  report(io, flags, shown, `${path} is bound to ${added.host}: ${sentAs(added)}`);
}

/** @throws CommandFailure usage */
function useRequest(host: string, flags: Flags): UseRequest {
  const { method, path, ask, port, name } = flags;
  return {
    host,
    ...(port !== undefined && { port }),
    ...credentialFields(flags),
    ...(method !== undefined && { methods: method }),
    ...(path !== undefined && { paths: path }),
    ...(ask !== undefined && { ask }),
    ...(flags.private && { private: true }),
    ...(name !== undefined && { name }),
  };
}

function listTemplates(io: Io, extra: string | undefined, flags: Flags): void {
  if (extra !== undefined) throw usage("templates takes no argument");
  if (flags.json) printJson(io, { templates: useTemplates });
  else for (const each of useTemplates) printRows(io, templateLine(each));
}

function templateLine(template: UseTemplate): string {
  const { name, host, made } = template;
  return `${name.padEnd(14)}${host.padEnd(36)}${("basic" in template ? "Basic" : template.header).padEnd(25)}${made}\n`;
}

async function listUses(io: Io, prefix: string, extra: string | undefined, flags: Flags): Promise<void> {
  if (extra !== undefined) throw usage("ls takes at most the beginning of paths");
  const { uses } = await withClient(io, flags, (client) => client.listUses({ prefix: prefix === "/" ? "" : prefix }));
  if (flags.json) return printJson(io, { uses });
  const width = Math.max(0, ...uses.map((each) => printable(each.path).length));
  for (const each of uses)
    printRows(io, `${printable(each.path).padEnd(width)}  ${formatHost(each)}  ${sentAs(each)}\n`);
  sayIfEmpty(io, uses.length, "no secret is bound to a host: strongroom use add  binds one", flags);
}

function formatHost({ host, port }: Use): string {
  return port === 443 ? host : `${host}:${port}`;
}

function sentAs(use: Omit<Use, "path">): string {
  const { methods, paths, ask, private: isPrivate, name } = use;
  const parts = [
    credentialText(use),
    ...(methods === undefined ? [] : [methods.join(", ")]),
    ...(paths === undefined ? [] : [paths.join(", ")]),
    ...(ask === "never" ? [] : [`asks: ${ask}`]),
    ...(isPrivate ? ["private addresses"] : []),
    ...(name === undefined ? [] : [`route /r/${name}/`]),
  ];
  return parts.join("; ");
}
