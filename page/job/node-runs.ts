import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobAnswer, NodeStateWord } from '../../src/console/api-types.ts';
import { type SocketMessage } from '../lib/socket.ts';
import { now, onMessage } from '../state.ts';

/** State of a node, and how long it ran, or has run so far; `null`: not known. */
export type NodeRun = { readonly state: NodeStateWord; readonly ranMs: number | null };

/** `sinceMs`: when it started, by the clock of the page. */
type Tracked = NodeRun & { readonly sinceMs: number | null };
type TrackedRuns = ReadonlyMap<string, Tracked>;

const RANKS = {
  waiting: 0,
  running: 1,
  cached: 2,
  done: 2,
  failed: 3,
  stopped: 3,
} as const satisfies Record<NodeStateWord, number>;

/** State and time of each node: as the server tells them, and while it runs as its messages do. */
export function useNodeRuns(answer: JobAnswer): ReadonlyMap<string, NodeRun> {
  const { id, ended_at_ms: endedAtMs } = answer.job;
  const [runs, setRuns] = useState<TrackedRuns>(() => fromAnswer(answer));
  const current = useRef(runs);
  const set = (next: TrackedRuns): void => {
    if (next === current.current) return;
    current.current = next;
    setRuns(next);
  };
  useEffect(() => {
    const known = endedAtMs === null ? current.current : new Map<string, Tracked>();
    set(laterOf(known, fromAnswer(answer)));
    if (endedAtMs !== null) return undefined;
    return onMessage((message) => {
      if (message.data['prompt_id'] === id) set(after(current.current, message));
    });
  }, [answer]);
  const isRunning = [...runs.values()].some(({ state }) => state === 'running');
  // The times of running nodes go on.
  if (isRunning) void now.value;
  return runs.size === 0 ? runs : new Map([...runs].map(([node, run]) => [node, shownRun(run)]));
}

function fromAnswer({ nodes }: JobAnswer): TrackedRuns {
  const nowMs = performance.now();
  return new Map(
    nodes.map(({ id, state, ran_ms: ranMs }) => {
      const sinceMs = state === 'running' && ranMs !== null ? nowMs - ranMs : null;
      return [id, { state, ranMs, sinceMs }];
    }),
  );
}

/** An answer may be older than a message that came while it was on its way. */
function laterOf(known: TrackedRuns, answered: TrackedRuns): TrackedRuns {
  return new Map(
    [...answered].map(([node, run]) => {
      const mine = known.get(node);
      return [node, mine !== undefined && RANKS[mine.state] > RANKS[run.state] ? mine : run];
    }),
  );
}

function after(runs: TrackedRuns, { type, data }: SocketMessage): TrackedRuns {
  const changed = new Map(runs);
  let hasChanged = false;
  const change = (node: string, state: NodeStateWord): void => {
    const run = runs.get(node);
    if (run === undefined || RANKS[state] <= RANKS[run.state]) return;
    hasChanged = true;
    const nowMs = performance.now();
    if (state === 'running') changed.set(node, { state, ranMs: null, sinceMs: nowMs });
    else if (run.sinceMs === null) changed.set(node, { ...run, state });
    else changed.set(node, { state, ranMs: nowMs - run.sinceMs, sinceMs: null });
  };
  const { node, nodes } = data;
  if (type === 'executing' && typeof node === 'string') {
    for (const [other, { state }] of runs)
      if (state === 'running' && other !== node) change(other, 'done');
    change(node, 'running');
  } else if (type === 'progress_state' && typeof nodes === 'object' && nodes !== null) {
    for (const [id, { state }] of Object.entries(nodes as Record<string, { state?: string }>))
      change(id, state === 'finished' ? 'done' : 'running');
  } else if (type === 'execution_cached' && Array.isArray(nodes)) {
    for (const id of nodes) change(String(id), 'cached');
  }
  return hasChanged ? changed : runs;
}

function shownRun({ state, ranMs, sinceMs }: Tracked): NodeRun {
  if (state !== 'running' || sinceMs === null) return { state, ranMs };
  return { state, ranMs: performance.now() - sinceMs };
}
