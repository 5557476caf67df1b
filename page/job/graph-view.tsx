import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { JobNode, NodeStateWord } from '../../src/console/api-types.ts';
import { duration, plural } from '../lib/format.ts';
import { Fact, Table } from '../lib/ui.tsx';
import type { LiveJob } from '../jobs/live.ts';
import { MAX_NODES, NODE_HEIGHT, NODE_WIDTH, placeNodes } from './layout.ts';
import type { NodeRun } from './node-runs.ts';

const WORDS = {
  waiting: 'waiting',
  cached: 'cached',
  running: 'running',
  done: 'done',
  failed: 'failed here',
  stopped: 'cancelled here',
} as const satisfies Record<NodeStateWord, string>;

/** A picture that is wider than the page shrinks to this; from there on it is scrolled. */
const MIN_SCALE = 0.75;
const UNKNOWN: NodeRun = { state: 'waiting', ranMs: null };

type GraphViewProps = {
  readonly nodes: readonly JobNode[];
  readonly runs: ReadonlyMap<string, NodeRun>;
  /** Steps of the node that runs. */
  readonly step: Pick<LiveJob, 'node' | 'value' | 'max'>;
};

/** The graph as a picture and as a table, with state and time of each node. */
export function GraphView({ nodes, runs, step }: GraphViewProps) {
  const [chosen, setChosen] = useState<string>();
  const [isTableOpen, setTableOpen] = useState(false);
  const node = nodes.find(({ id }) => id === chosen);
  return (
    <>
      {nodes.length > MAX_NODES ? (
        <p class="muted">{plural(nodes.length, 'node')}: too many for a picture.</p>
      ) : (
        <Picture {...{ nodes, runs, step, chosen, onChoose: setChosen }} />
      )}
      {node !== undefined && <NodePanel node={node} run={runs.get(node.id) ?? UNKNOWN} />}
      <details class="node-table" onToggle={(event) => setTableOpen(event.currentTarget.open)}>
        <summary>{plural(nodes.length, 'node')} as a table</summary>
        {isTableOpen && <NodeTable nodes={nodes} runs={runs} />}
      </details>
    </>
  );
}

type PictureProps = GraphViewProps & {
  readonly chosen: string | undefined;
  readonly onChoose: (id: string | undefined) => void;
};

function Picture({ nodes, runs, step, chosen, onChoose }: PictureProps) {
  const [hovered, setHovered] = useState<string>();
  const shape = nodes
    .map(({ id, links }) => `${id}:${links.map(({ from }) => from).join()}`)
    .join(';');
  const { width, height, places, links } = useMemo(() => placeNodes(nodes), [shape]);
  const isLit = (id: string): boolean => id === hovered || id === chosen;
  return (
    <ScrolledSvg {...{ nodes, runs, width, height }}>
      {links.map(({ key, path, from, to }) => (
        <path key={key} d={path} class={`link ${isLit(from) || isLit(to) ? 'is-chosen' : ''}`} />
      ))}
      {nodes.map((node) => {
        const { x, y } = places.get(node.id) ?? { x: 0, y: 0 };
        const isChosen = node.id === chosen;
        return (
          <g
            key={node.id}
            class={`node is-${(runs.get(node.id) ?? UNKNOWN).state} ${isChosen ? 'is-chosen' : ''}`}
            transform={`translate(${x} ${y})`}
            onPointerEnter={() => setHovered(node.id)}
            onPointerLeave={() => setHovered(undefined)}
            onClick={() => onChoose(isChosen ? undefined : node.id)}
          >
            <NodeShape node={node} run={runs.get(node.id) ?? UNKNOWN} step={step} />
          </g>
        );
      })}
    </ScrolledSvg>
  );
}

/** Its label has the state of each node. */
function ScrolledSvg({
  nodes,
  runs,
  width,
  height,
  children,
}: Pick<GraphViewProps, 'nodes' | 'runs'> & {
  readonly width: number;
  readonly height: number;
  readonly children: ComponentChildren;
}) {
  const words = nodes.map(({ id, title }) => `${title}, ${WORDS[(runs.get(id) ?? UNKNOWN).state]}`);
  return (
    <div
      class="graph"
      tabIndex={0}
      role="region"
      aria-label={`Graph of ${plural(nodes.length, 'node')}`}
    >
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        style={{ minWidth: `${Math.round(width * MIN_SCALE)}px` }}
        role="img"
        aria-label={words.join('; ')}
      >
        {children}
      </svg>
    </div>
  );
}

function NodeShape({
  node,
  run: { state, ranMs },
  step,
}: {
  readonly node: JobNode;
  readonly run: NodeRun;
  readonly step: GraphViewProps['step'];
}) {
  const { value = 0, max = 0 } = step;
  const hasSteps = state === 'running' && step.node === node.id && max > 1;
  const note = [
    `#${node.id}`,
    hasSteps ? `${value}/${max}` : WORDS[state],
    ranMs === null ? '' : duration(ranMs),
  ].filter((word) => word !== '');
  return (
    <>
      <title>{`${node.title} (${node.class_type}), ${note.join(', ')}`}</title>
      <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
      <rect class="node-mark" width="4" height={NODE_HEIGHT - 16} x="6" y="8" rx="2" />
      <text x="18" y="24">
        {shorten(node.title, 19)}
      </text>
      <text x="18" y="43" class="node-note">
        {note.join(' · ')}
      </text>
      {hasSteps && (
        <rect
          class="node-steps"
          x="1"
          y={NODE_HEIGHT - 4}
          width={(NODE_WIDTH - 2) * Math.min(1, value / max)}
          height="3"
        />
      )}
    </>
  );
}

function NodePanel({ node, run }: { readonly node: JobNode; readonly run: NodeRun }) {
  return (
    <section class="panel node-panel" aria-label={`Node ${node.id}`} aria-live="polite">
      <h3>
        <bdi>{node.title}</bdi>{' '}
        <small>
          {node.class_type} · node {node.id} · {WORDS[run.state]}
          {run.ranMs === null ? '' : ` · ${duration(run.ranMs)}`}
        </small>
      </h3>
      <dl class="values">
        {node.values.map(({ input, text }) => (
          <Fact key={input} name={input}>
            {text}
          </Fact>
        ))}
        {node.links.map(({ input, from, slot }) => (
          <Fact key={input} name={input}>
            <span class="muted">
              from node {from}, output {slot}
            </span>
          </Fact>
        ))}
      </dl>
    </section>
  );
}

function NodeTable({ nodes, runs }: Pick<GraphViewProps, 'nodes' | 'runs'>) {
  return (
    <Table label="Nodes" columns={['Node', 'Class', 'State', 'Ran', 'Inputs']}>
      {nodes.map(({ id, title, class_type: classType, values, links }) => {
        const { state, ranMs } = runs.get(id) ?? UNKNOWN;
        const inputs = [
          ...values.map(({ input, text }) => `${input}: ${shorten(text, 60)}`),
          ...links.map(({ input, from }) => `${input}: node ${from}`),
        ];
        return (
          <tr key={id}>
            <td>
              <bdi>{title}</bdi> <small>#{id}</small>
            </td>
            <td class="mono">{classType}</td>
            <td>{WORDS[state]}</td>
            <td class="is-number">{ranMs === null ? '–' : duration(ranMs)}</td>
            <td>{inputs.join(', ')}</td>
          </tr>
        );
      })}
    </Table>
  );
}

function shorten(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}
