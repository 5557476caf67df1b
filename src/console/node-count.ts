/** Returns `1 node`, `2 nodes` and so on. */
export function nodeCount(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}
