import { useMemo, useState } from 'preact/hooks';
import type { JobNode, NodeStateWord } from '../../src/console/api-types.ts';
import { duration, plural } from '../lib/format.ts';
import { MAX_NODES, NODE_HEIGHT, NODE_WIDTH, placeNodes } from './layout.ts';

const WORDS = {
  waiting: 'waiting',
  cached: 'cached',
  running: 'running',
  done: 'done',
  failed: 'failed here',
} as const satisfies Record<NodeStateWord, string>;

type GraphViewProps = {
  readonly nodes: readonly JobNode[];
  /** State of nodes that the socket has told; it counts before the node's own. */
  readonly states: ReadonlyMap<string, NodeStateWord>;
  /** How long each node ran, in milliseconds, where that is known. */
  readonly times: ReadonlyMap<string, number>;
};

/** The graph as a picture, with the state of each node. */
export function GraphView({ nodes, states, times }: GraphViewProps) {
  const shape = nodes
    .map(({ id, links }) => `${id}:${links.map(({ from }) => from).join()}`)
    .join(';');
  const picture = useMemo(
    () => (nodes.length > MAX_NODES ? undefined : placeNodes(nodes)),
    [shape],
  );
  const [chosen, setChosen] = useState<string>();
  if (picture === undefined)
    return <p class="muted">{plural(nodes.length, 'node')}: too many for a picture.</p>;
  const stateOf = (node: JobNode): NodeStateWord => states.get(node.id) ?? node.state;
  return (
    <div
      class="graph"
      tabIndex={0}
      role="region"
      aria-label={`Graph of ${plural(nodes.length, 'node')}`}
    >
      <svg
        width={picture.width}
        height={picture.height}
        viewBox={`0 0 ${picture.width} ${picture.height}`}
        role="img"
        aria-label={describe(nodes, stateOf)}
      >
        {picture.links.map(({ key, path, from, to }) => (
          <path
            key={key}
            d={path}
            class={`link ${chosen === from || chosen === to ? 'is-chosen' : ''}`}
          />
        ))}
        {picture.nodes.map(({ node, x, y }) => {
          const state = stateOf(node);
          const time = times.get(node.id);
          const note = [`#${node.id}`, WORDS[state], time === undefined ? '' : duration(time)];
          return (
            <g
              key={node.id}
              class={`node is-${state}`}
              transform={`translate(${x} ${y})`}
              onPointerEnter={() => setChosen(node.id)}
              onPointerLeave={() => setChosen(undefined)}
            >
              <title>{`${node.title} (${node.class_type}), ${note.join(', ')}`}</title>
              <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
              <rect class="node-mark" width="4" height={NODE_HEIGHT - 16} x="6" y="8" rx="2" />
              <text x="18" y="22">
                {shorten(node.title, 21)}
              </text>
              <text x="18" y="40" class="node-note">
                {note.filter((word) => word !== '').join(' · ')}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function describe(nodes: readonly JobNode[], stateOf: (node: JobNode) => NodeStateWord): string {
  return nodes.map((node) => `${node.title}, ${WORDS[stateOf(node)]}`).join('; ');
}

function shorten(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}
