import fc from 'fast-check';
import type { ProgressInput } from '../../src/translate/progress/progress-state.ts';
import type { Graph, Job, NodeUi, Output, Progress } from '../../src/protocol/v2.ts';
import {
  chain,
  fileRef,
  filesOf,
  finished,
  jobOf,
  output,
  outputOf,
  preview,
  progress,
  started,
  status,
} from './script.ts';

export type NodeSpec = {
  /** The number of steps of each pass. */
  readonly passes: readonly number[];
  readonly outputs: number;
  readonly previews: boolean;
  readonly isCached: boolean;
  readonly isSocketOnly: boolean;
};

export type Ending = 'succeeded' | 'failed' | 'canceled' | 'expired' | 'lost';

/** A run as its upstream lived it, and as it reached us. */
export type LegalRun = {
  readonly nodes: readonly NodeSpec[];
  readonly graph: Graph;
  readonly inputs: readonly ProgressInput[];
  readonly job: Job;
  readonly ending: Ending;
  readonly upstream: 'exact' | 'derived';
};

/** An input, and what a poll would have read right after it. */
type Moment = { readonly input: ProgressInput; readonly job: Job };

const node: fc.Arbitrary<NodeSpec> = fc.record({
  passes: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
  outputs: fc.nat(2),
  previews: fc.boolean(),
  isCached: fc.boolean(),
  isSocketOnly: fc.boolean(),
});

const MAX_NODES = 5;

/** The ways in which an event may arrive, or be missing; all of them are legal. */
const OUTCOMES = [
  'keep',
  'keep',
  'keep',
  'drop',
  'twice',
  'poll',
  'late poll',
  'stale poll',
  'swapped',
  'resumed',
  'idle',
  'ghost',
] as const;

/** Runs with gaps, duplicates, polls in place of a stream, stale polls and pictures of unknown nodes. */
export const legalRuns: fc.Arbitrary<LegalRun> = fc
  .record({
    nodes: fc.array(node, { minLength: 1, maxLength: MAX_NODES }),
    upstream: fc.constantFrom('exact' as const, 'derived' as const),
    ending: fc.constantFrom<Ending[]>('succeeded', 'failed', 'canceled', 'expired', 'lost'),
    until: fc.nat(60),
    deliveries: fc.array(fc.constantFrom(...OUTCOMES), { minLength: 80, maxLength: 80 }),
    isPollOnly: fc.boolean(),
  })
  .map(({ nodes, upstream, ending, until, deliveries, isPollOnly }) => {
    const graph = chain(...nodes.map((_, i) => [String(i + 1), `Class${i + 1}`] as const));
    const all = upstream === 'exact' ? exactMoments(nodes) : derivedMoments(nodes);
    const moments = ending === 'succeeded' ? all : all.slice(0, until);
    const last = moments.at(-1)?.job ?? jobOf({ status: 'queued', started_at: null });
    const job = endOf(last, ending);
    const seen = isPollOnly
      ? moments.map((moment) => poll(moment.job))
      : deliver(moments, deliveries);
    const afterwards = [...all.slice(-3).map(({ input }) => input), ending_(job, ending)];
    return {
      nodes,
      graph,
      inputs: clocked([...seen, ending_(job, ending), ...afterwards]),
      job,
      ending,
      upstream,
    };
  });

function exactMoments(nodes: readonly NodeSpec[]): Moment[] {
  const cached = nodes.flatMap((spec, i) => (spec.isCached ? [String(i + 1)] : []));
  const log = createLog({ x_cached_nodes: cached, x_ui: {} });
  log.add(status('queued'));
  log.add(status('running'));
  log.add(status('running', cached));
  for (const [i, spec] of nodes.entries()) {
    const id = String(i + 1);
    if (!spec.isCached) log.add(started(id), { progress: begunAt(id) });
    if (!spec.isCached) addSteps(log, id, spec);
    const made = spec.isSocketOnly && spec.isCached ? [] : makeOutputs(log, id, spec);
    const listed = made.filter(({ x_websocket }) => !x_websocket);
    const ui: NodeUi = { images: listed.map((item) => ({ x_asset: item.id })) };
    const shown = listed.length > 0 ? ui : spec.isCached ? null : undefined;
    log.add(finished(id, shown), shown ? { x_ui: { ...log.job().x_ui, [id]: shown } } : {});
  }
  return log.moments;
}

function derivedMoments(nodes: readonly NodeSpec[]): Moment[] {
  const log = createLog({});
  log.add(status('queued'));
  log.add(status('running'));
  for (const [i, spec] of nodes.entries()) {
    const id = String(i + 1);
    log.add(eventOf(begunAt(id)), { progress: begunAt(id) });
    addSteps(log, id, spec);
    makeOutputs(log, id, { ...spec, isSocketOnly: false });
  }
  return log.moments;
}

function addSteps(log: Log, id: string, spec: NodeSpec): void {
  let value = Number(id) - 1;
  for (const steps of spec.passes) {
    for (let step = 1; step <= steps; step++) {
      if (spec.previews) log.add(preview(id, step % 2 === 0 ? 'now' : 'with-step'));
      // It never decreases, also when a pass begins.
      value = Math.max(value, Number(id) - 1 + step / steps);
      const progressNow = progressOf(id, { step, steps, value: value / MAX_NODES });
      log.add(eventOf(progressNow), { progress: progressNow });
    }
  }
}

function makeOutputs(log: Log, id: string, spec: NodeSpec): Output[] {
  const made = Array.from({ length: spec.outputs }, (_, i) =>
    outputOf(`${id}-${i}`, id, spec.isSocketOnly ? { x_websocket: true } : {}),
  );
  for (const item of made) {
    log.add(output({ ...item, x_with_step: spec.isSocketOnly }, fileRef(item.name)), {
      outputs: [...log.job().outputs, item],
    });
  }
  return made;
}

type Log = {
  add(input: ProgressInput, change?: Partial<Job>): void;
  job(): Job;
  readonly moments: Moment[];
};

function createLog(more: Partial<Job>): Log {
  let job = jobOf({ status: 'running', ...more });
  const moments: Moment[] = [];
  return {
    moments,
    job: () => job,
    add(input, change = {}) {
      job = { ...job, ...change };
      moments.push({ input, job });
    },
  };
}

function progressOf(
  current_node: string,
  { step, steps, value }: { step?: number; steps?: number; value: number },
): Progress {
  return {
    value,
    nodes_done: Number(current_node) - 1,
    nodes_total: MAX_NODES,
    current_node,
    step: step ?? null,
    steps: steps ?? null,
  };
}

function begunAt(id: string): Progress {
  return progressOf(id, { value: (Number(id) - 1) / MAX_NODES });
}

function eventOf(data: Progress): ProgressInput {
  return { kind: 'event', event: { event: 'progress', data }, atMs: 25 };
}

function deliver(
  moments: readonly Moment[],
  deliveries: readonly (typeof OUTCOMES)[number][],
): ProgressInput[] {
  const at = (i: number) => deliveries[i % deliveries.length] ?? 'keep';
  return moments.flatMap(({ input, job }, i): ProgressInput[] => {
    const next = moments[i + 1]?.input;
    if (i > 0 && at(i - 1) === 'swapped' && maySwap(moments[i - 1]?.input, input)) return [];
    switch (at(i)) {
      case 'keep':
        return [input];
      case 'drop':
        return [];
      case 'twice':
        return [input, input];
      case 'poll':
        return [poll(job)];
      case 'late poll':
        return [input, poll(job)];
      case 'stale poll':
        return [input, poll(moments[Math.max(0, i - 4)]?.job ?? job)];
      case 'swapped':
        return next && maySwap(input, next) ? [next, input] : [input];
      case 'resumed':
        return job.progress ? [input, status('running'), eventOf(job.progress)] : [input];
      case 'idle':
        return [input, { kind: 'idle', atMs: 1 }];
      case 'ghost':
        return [preview('ghost'), progress('ghost', { step: 1, steps: 2 }), input];
    }
  });
}

/** A last step before an earlier one cannot be told from a further pass of the same length. */
function maySwap(input: ProgressInput | undefined, next: ProgressInput): boolean {
  const [first, second] = [stepOf(input), stepOf(next)];
  return first !== undefined && second !== undefined && second.step !== second.steps;
}

function stepOf(input: ProgressInput | undefined): Progress | undefined {
  return input?.kind === 'event' && input.event.event === 'progress' ? input.event.data : undefined;
}

function poll(job: Job): ProgressInput {
  return { kind: 'snapshot', job, files: filesOf(job), atMs: 0 };
}

function endOf(job: Job, ending: Ending): Job {
  if (ending === 'lost') return job;
  const error =
    ending === 'failed' ? { code: 'node_execution_error', message: 'no', node_id: '1' } : null;
  return { ...job, status: ending, error, completed_at: '2026-01-01T00:00:09.000Z' };
}

function ending_(job: Job, ending: Ending): ProgressInput {
  if (ending === 'lost') return { kind: 'lost', reason: 'unknown', atMs: 0 };
  return { kind: 'settled', job, files: filesOf(job), atMs: 0 };
}

/** Time moves on by uneven steps, so that `idle` sometimes comes early and sometimes late. */
function clocked(inputs: readonly ProgressInput[]): ProgressInput[] {
  return inputs.map((input, i) => ({ ...input, atMs: 1000 + i * 137 }));
}
