/** Work that runs one after the other, in the order of the calls. */

export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function oneAtATime(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const current = last.then(work, work);
    last = current;
    return current;
  };
}
