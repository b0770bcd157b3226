/** `strongroom allow`: lets `run`, `export`, `inject` and `agent run` use a project file as it is now. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, report, withOutput } from "../kit/output.js";
import {
  allow,
  type Project,
  type ProjectAgent,
  projectFileAbove,
  projectFileName,
  readProject,
  revoke,
  revokeFile,
} from "../run/project.js";

type Flags = OutputFlags & { readonly revoke?: true };

const details = `
${projectFileName} says which secrets programs get in its directory and below:
  prefix = "app/"            as run --prefix
  name = "path"              as run --name
  env-file = ".env.secrets"  as run --env-file, beside the project file
  [set]                      as run --set
  PGPASSWORD = "app/db/password"
  [agent]                    as agent run --use; allow-hosts and
  use = ["ai/"]              placeholders in the same way
run, and export as dotenv or shell, use it when no --prefix, --set or --env-file
is given. In a template, strongroom://./db/password is a path in its prefix.

It is used once you have allowed it, and must be allowed again after each change
of it or of its env file. It must be your own and not writable by others.`;

export function define(command: Command, io: Io): void {
  command
    .description("Allows the project file of this directory, as it is now, to choose secrets for programs.")
    .argument("[file]", `the project file; by default the nearest ${projectFileName} upwards from here`)
    .option("--revoke", "no longer allow it")
    .addHelpText("after", details);
  withOutput(command).action((given, flags) => allowProject(io, given, flags));
}

async function allowProject(io: Io, given: string | undefined, flags: Flags): Promise<void> {
  const file = given === undefined ? await projectFileAbove(io.cwd()) : resolve(io.cwd(), given);
  if (file === null) throw new CommandFailure("usage", `there is no ${projectFileName} here or in a directory above`);
  if (flags.revoke && !existsSync(file)) {
    await revokeFile(io, file);
    return report(io, flags, { file, allowed: false }, `${printable(file)} is no longer allowed`);
  }
  const project = await readProject(file);
  await (flags.revoke ? revoke : allow)(io, project.files);
  const { agent, sources } = project;
  const { prefix, set } = sources;
  const envFiles = project.sources.envFiles.map(({ file }) => file);
  const done = { file, allowed: !flags.revoke, prefix, set, envFiles, ...(agent && { agent }) };
  report(
    io,
    flags,
    done,
    flags.revoke ? `${file} is no longer allowed` : `${file} is allowed: ${projectSummary(project)}`,
  );
}

function projectSummary({ agent, sources: { prefix, set, envFiles } }: Project): string {
  const parts = [
    ...(prefix === undefined ? [] : [`the secrets in ${prefix}`]),
    ...set.map(({ name, path }) => `${name} from ${path}`),
    ...envFiles.map(({ file }) => `the variables of ${file}`),
    ...(agent === null ? [] : [`agent run may use ${agentSummary(agent)}`]),
  ];
  return parts.length === 0 ? counted(0, "secret") : parts.join(", ");
}

function agentSummary({ use, allowHosts }: ProjectAgent): string {
  const hosts = allowHosts.length === 0 ? "" : ` and reach ${allowHosts.join(", ")}`;
  return `${use.join(", ") || "every bound secret"}${hosts}`;
}
