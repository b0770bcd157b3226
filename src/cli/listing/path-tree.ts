/** Paths as a tree: a folder's name ends in a slash, and a folder with a single entry shares that entry's line. */

/** A line of the tree; without an item for a folder. */
export type TreeRow<T> = { readonly branch: string; readonly name: string; readonly item?: T | undefined };

type Node<T> = { item?: T; readonly children: Map<string, Node<T>> };

/** Returns the lines from top to bottom; entries keep their order in each folder. */
export function treeOf<T extends { readonly path: string }>(items: readonly T[]): TreeRow<T>[] {
  const root: Node<T> = { children: new Map() };
  for (const item of items) {
    let node = root;
    for (const name of item.path.split(/(?<=\/)/)) node = childOf(node, name);
    node.item = item;
  }
  return [...root.children].flatMap(([name, node]) => {
    const top = joined(name, node);
    return [{ branch: "", name: top.name, item: top.node.item }, ...rowsUnder(top.node, "")];
  });
}

function childOf<T>({ children }: Node<T>, name: string): Node<T> {
  const known = children.get(name);
  if (known !== undefined) return known;
  const made: Node<T> = { children: new Map() };
  children.set(name, made);
  return made;
}

function rowsUnder<T>({ children }: Node<T>, indent: string): TreeRow<T>[] {
  const last = [...children.keys()].at(-1);
  return [...children].flatMap(([key, child]) => {
    const [corner, bar] = key === last ? ["└── ", "    "] : ["├── ", "│   "];
    const { name, node } = joined(key, child);
    return [{ branch: `${indent}${corner}`, name, item: node.item }, ...rowsUnder(node, `${indent}${bar}`)];
  });
}

function joined<T>(name: string, node: Node<T>): { readonly name: string; readonly node: Node<T> } {
  const [only, ...others] = node.children;
  return only === undefined || others.length > 0 ? { name, node } : joined(`${name}${only[0]}`, only[1]);
}
