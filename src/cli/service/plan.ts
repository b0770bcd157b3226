/** What a service runs: this Node, this program, and the settings that this command sees, with absolute paths. */
import { realpathSync } from "node:fs";
import { definitions, type Settings } from "../../config/definitions.js";
import { readSettings } from "../../config/settings.js";
import { CommandFailure } from "../lib/errors.js";

export type ServicePlan = {
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
};

/** @throws CommandFailure usage for a token in the environment; StartError for invalid settings */
export function planService(home: string | undefined): ServicePlan {
  if (process.env["STRONGROOM_TOKEN"]) {
    throw new CommandFailure(
      "usage",
      "a service gets no token by its environment: unset STRONGROOM_TOKEN, use its file",
    );
  }
  const settings = readSettings(home === undefined ? {} : { home }, process.env);
  const names = Object.keys(definitions) as (keyof Settings)[];
  const given = names.filter((name) => name !== "home" && process.env[definitions[name].variable]);
  const variables = given.map((name) => [definitions[name].variable, textOf(name, settings[name])]);
  const program = [process.execPath, realpathSync(process.argv[1] ?? ""), "serve"];
  return { program, environment: { STRONGROOM_HOME: settings.home, ...Object.fromEntries(variables) } };
}

/** A path has been made absolute when it was read; anything else stays as it was given. */
function textOf(name: keyof Settings, value: unknown): string {
  return typeof value === "string" ? value : (process.env[definitions[name].variable] ?? "");
}
