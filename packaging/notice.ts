/** The text of NOTICE: the bundled packages with their licences, each licence's text once. */
import { type BundledPackage, bundledPackages } from "./bundled-packages.js";

const head = `The built program (dist/program) contains these packages, under the licences below. The build writes
this file from what the bundler put there.
`;

const vectors = `The test vectors in test/vectors/wycheproof-*, which no package contains, are cases of Project Wycheproof
(https://github.com/C2SP/wycheproof), rewritten as rows; licensed under the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0).
`;

const rule = `\n${"-".repeat(80)}\n\n`;

export function renderNotice(): string {
  const byText = new Map<string, BundledPackage[]>();
  for (const one of bundledPackages()) {
    const text = one.licenceText ?? `${one.licence}, without a text of its own; author: ${one.author ?? "not named"}`;
    byText.set(text, [...(byText.get(text) ?? []), one]);
  }
  const parts = [...byText].map(([text, packages]) => {
    const names = packages.map(({ name, version, licence }) => `${name} ${version} (${licence})\n`);
    return `${names.join("")}\n${text.replaceAll("\r\n", "\n")}\n`;
  });
  return [head, ...parts, vectors].join(rule);
}
