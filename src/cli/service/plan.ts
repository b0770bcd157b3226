/** Command line of a service: this Node, this program, and the settings that this command sees, with absolute paths. */
import { realpathSync } from "node:fs";
import { definitions, type Settings } from "../../config/definitions.js";
import { settingsOfStart } from "../kit/args/start-settings.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";

export type ServicePlan = {
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
};

/** @throws CommandFailure usage for a token in the environment; StartError for invalid settings */
export async function planService(
  io: Io,
  home: string | undefined,
  idleTimeout: string | undefined,
): Promise<ServicePlan & { readonly idleTimeoutMs: number }> {
  if (io.env["STRONGROOM_TOKEN"]) {
    throw new CommandFailure(
      "usage",
      "a service gets no token from its environment: unset STRONGROOM_TOKEN, and use the token file",
    );
  }
  const flags = { ...(home !== undefined && { home }), ...(idleTimeout !== undefined && { idleTimeout }) };
  const settings = await settingsOfStart(flags, io.env);
  const names = Object.keys(definitions) as (keyof Settings)[];
  const replaced = idleTimeout === undefined ? ["home"] : ["home", "idleTimeout", "idleTimeoutMs"];
  const given = names.filter((name) => !replaced.includes(name) && io.env[definitions[name].variable]);
  const variables = given.map((name) => [definitions[name].variable, settingText(io, name, settings[name])]);
  const environment = {
    STRONGROOM_HOME: settings.home,
    ...Object.fromEntries(variables),
    ...(idleTimeout !== undefined && { [definitions.idleTimeout.variable]: idleTimeout }),
  };
  const [node] = io.program;
  const program = [node, realpathSync(io.program.at(-1) ?? ""), "serve"];
  return { ...withoutControls({ program, environment }), idleTimeoutMs: settings.idleTimeoutMs };
}

/** Returns the plan. DANGER: a line break in a value or a path would add lines of its own to the service manager's file. @throws CommandFailure usage */
export function withoutControls(plan: ServicePlan): ServicePlan {
  const control = /\p{Cc}/u;
  const [name] = Object.entries(plan.environment).find(([, value]) => control.test(value)) ?? [];
  if (name !== undefined) throw new CommandFailure("usage", `${name} has a control character: choose another value`);
  if (!plan.program.some((word) => control.test(word))) return plan;
  throw new CommandFailure("usage", "the path of Node or of strongroom has a control character: move it elsewhere");
}

/** A path has been made absolute when it was read; anything else stays as it was given. */
function settingText(io: Io, name: keyof Settings, value: unknown): string {
  return typeof value === "string" ? value : (io.env[definitions[name].variable] ?? "");
}
