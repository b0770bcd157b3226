/** Quoting for a POSIX shell. */

/** Returns the text as one word of a shell, in single quotes, in which nothing is special. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the command that sets and exports the variables. The names must be valid, and the values without NUL. */
export function exportLine(variables: Iterable<readonly [name: string, value: string]>): string {
  const words = [...variables].map(([name, value]) => ` ${name}=${shellQuote(value)}`);
  return words.length === 0 ? "" : `export${words.join("")}\n`;
}
