/** Long forms of the tests, with larger numbers than a normal run has: `npm run test:long -- kills`. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type LongForm, longForms } from "../../tools/docs/long-forms.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const support = "dist/test/support";
/** `--exit`: Node's own teardown may wait for ever for a request that was pending, as on a database that fails. */
const mocha = [
  "node_modules/mocha/bin/mocha.js",
  ...[
    "--no-config",
    "--require",
    `${support}/hooks.js`,
    "--reporter",
    `${support}/reporter.js`,
    "--timeout",
    "0",
    "--exit",
  ],
];

function main([name, ...rest]: readonly string[]): number {
  if (name === undefined || name === "--help" || name === "-h") return print(help(), name === undefined ? 2 : 0);
  const form = new Map(Object.entries(longForms)).get(name);
  if (form === undefined) return print(`there is no long form "${name}"\n\n${help()}`, 2);
  return runForm(form, rest);
}

/** A number that the environment already sets is kept. */
function runForm({ files, numbers = {} }: LongForm, rest: readonly string[]): number {
  const areTests = files.every((file) => file.endsWith(".test"));
  const built = files.map((file) => `dist/test/${file}.js`);
  const args = [...(areTests ? mocha : []), ...built, ...rest];
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...numbers, ...process.env },
  });
  return status ?? 1;
}

function help(): string {
  const lines = Object.entries(longForms).flatMap(([name, { meaning, numbers = {} }]) => [
    `  ${name.padEnd(16)} ${meaning}`,
    ...Object.entries(numbers).map(([variable, number]) => `${" ".repeat(19)}${variable}=${number}`),
  ]);
  return `usage: npm run test:long -- <form> [arguments]\n\n${lines.join("\n")}

The variables in the environment win over these numbers. Arguments go to mocha, or to the program of soak and nodes.\n`;
}

function print(text: string, code: number): number {
  (code === 0 ? process.stdout : process.stderr).write(text);
  return code;
}

process.exitCode = main(process.argv.slice(2));
