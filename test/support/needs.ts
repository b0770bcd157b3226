/** Tests that need more than every machine has: where it is missing, a pending test says what it is. */

/** Reports in the suite what this machine lacks ("needs strace"); returns whether that is anything. */
export function isMissing(what: string | null): boolean {
  if (what !== null) it(what);
  return what !== null;
}

/** An `it` for what is too slow for the normal suite: it runs while the variable is set, as the long forms set it. */
export function onlyWith(variable: string): (title: string, test: Mocha.AsyncFunc) => void {
  return (title, test) => {
    if (process.env[variable] === undefined) it(`${title} (needs ${variable})`);
    else it(title, test);
  };
}
