/** Comparison of a running server's settings with those that a start would have now. */
import { definitions, formatDefault, type Settings } from "../../../config/definitions.js";
import { shownDuration } from "../../../config/readers.js";
import { type GivenFlags, givenSettingTexts, namedSettings } from "../../../config/settings.js";
import { homeAt } from "../../../files/home.js";
import { findServerStart, type ServerStart } from "../../../storage/files/claim.js";

/** A setting, by its flag's name, with both values as people read them. */
export type Difference = { readonly name: string; readonly running: string; readonly wanted: string };

export type Differences = {
  /** Flags and variables of this call that the server does not have. */
  readonly given: readonly Difference[];
  /** Flags and variables of the server's start that neither this call nor the file has. */
  readonly onlyThatStart: readonly Difference[];
  /** Changes of the file since the server's start. */
  readonly inFile: readonly Difference[];
  /** The command that restarts the server, where a service manager runs it. */
  readonly restartedBy: string | null;
};

/** Returns null where the server does not say its settings, as one of an earlier version. */
export async function compareWithRunning(
  settings: Settings,
  flags: GivenFlags,
  environment: NodeJS.ProcessEnv,
): Promise<Differences | null> {
  const start = await findServerStart(homeAt(settings.home).vault);
  if (start === null) return null;
  const given = givenSettingTexts(flags, environment);
  const different = Object.entries(namedSettings(settings)).filter(
    ([name, value]) => name in start.settings && JSON.stringify(value) !== JSON.stringify(start.settings[name]),
  );
  const shown = ([name, value]: [string, unknown]): Difference => {
    return {
      name,
      running: start.given[name] ?? shownSetting(name, start.settings[name]),
      wanted: shownSetting(name, value),
    };
  };
  const named = (isWanted: (name: string) => boolean) => different.filter(([name]) => isWanted(name)).map(shown);
  return {
    given: named((name) => name in given).map((each) => ({ ...each, wanted: given[each.name] ?? each.wanted })),
    onlyThatStart: named((name) => !(name in given) && isGiven(start, name)),
    inFile: named((name) => !(name in given) && !isGiven(start, name)),
    restartedBy: start.restartedBy,
  };
}

function isGiven({ given }: ServerStart, name: string): boolean {
  return Object.hasOwn(given, name);
}

function shownSetting(name: string, value: unknown): string {
  if (name === definitions.idleTimeout.flag) return value === 0 ? "never" : shownDuration(Number(value));
  if (value === null || (Array.isArray(value) && value.length === 0)) return defaultText(name);
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value);
}

function defaultText(name: string): string {
  const definition = Object.values(definitions).find(({ flag }) => flag === name);
  return definition === undefined ? "none" : formatDefault(definition);
}
