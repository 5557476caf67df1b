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
        path: curve(at(from), at(id)),
      })),
    ),
  };
}

function cornerOf({ x, y }: Position): Position {
  return { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 };
}

function curve(from: Position, to: Position): string {
  const [x1, x2] = [from.x + NODE_WIDTH / 2, to.x - NODE_WIDTH / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1},${from.y} C${x1 + bend},${from.y} ${x2 - bend},${to.y} ${x2},${to.y}`;
}
