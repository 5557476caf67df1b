/** `1 node`, `2 nodes`. */
export function nodeCount(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}
