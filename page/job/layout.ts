import { Graph, layout } from '@dagrejs/dagre';
import type { JobNode } from '../../src/console/api-types.ts';

export const NODE_WIDTH = 184;
export const NODE_HEIGHT = 56;

type Position = { readonly x: number; readonly y: number };
type PlacedLink = {
  readonly key: string;
  readonly path: string;
  readonly from: string;
  readonly to: string;
};
export type Picture = {
  /** Where the upper left corner of each node is. */
  readonly places: ReadonlyMap<string, Position>;
  readonly links: readonly PlacedLink[];
  readonly width: number;
  readonly height: number;
};

/** Beyond this many nodes a layout takes seconds. */
export const MAX_NODES = 600;

/** Places the nodes of a graph from left to right. */
export function placeNodes(nodes: readonly JobNode[]): Picture {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 38, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { id, links } of nodes) for (const { from } of links) graph.setEdge(from, id);
  layout(graph);
  const at = (id: string) => graph.node(id) as Position;
  const between = (from: string, to: string): readonly Position[] => {
    // A link to the next column is one curve; a longer one goes where no node is.
    if (at(to).x - at(from).x < 2 * NODE_WIDTH) return [];
    const { points = [] } = graph.edge(from, to) as { points?: readonly Position[] };
    return points.slice(1, -1);
  };
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    places: new Map(nodes.map(({ id }) => [id, cornerOf(at(id))])),
    links: nodes.flatMap(({ id, links }) =>
      links.map(({ from, input }) => ({
        key: `${from} ${id} ${input}`,
        from,
        to: id,
        path: curve([at(from), ...between(from, id), at(id)]),
      })),
    ),
  };
}

function cornerOf({ x, y }: Position): Position {
  return { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 };
}

function curve(places: readonly Position[]): string {
  const last = places.length - 1;
  const points = places.map(({ x, y }, at) => {
    const side = at === 0 ? NODE_WIDTH / 2 : at === last ? -NODE_WIDTH / 2 : 0;
    return { x: x + side, y };
  });
  return points
    .map(({ x, y }, at) => {
      const before = points[at - 1];
      if (before === undefined) return `M${x},${y}`;
      const bend = last === 1 ? Math.max(24, (x - before.x) / 2) : (x - before.x) / 2;
      return `C${before.x + bend},${before.y} ${x - bend},${y} ${x},${y}`;
    })
    .join(' ');
}
