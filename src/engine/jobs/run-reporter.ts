import type { Clock } from '../../lib/clock.ts';
import { parseJson, setMember } from '../../protocol/json.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import type { JobError, NodeUi, Progress } from '../../protocol/v2.ts';
import { showOutput } from '../job-links.ts';
import type { LiveJob } from './live-job.ts';
import type { FromWorker, ShownResult, StoredOutput } from './worker-protocol.ts';

type WorkerEvent = Exclude<FromWorker, { type: 'end' | 'request' }>;

/** Applies the messages of a worker to the job's state, and emits its events in the same order. */
export interface RunReporter {
  readonly apply: (message: WorkerEvent) => void;
  readonly output: (stored: StoredOutput) => void;
  /** Emits the last progress of a job when all its nodes are done. */
  complete(): void;
  readonly current: () => Pick<JobError, 'node_id' | 'class_type'>;
}

type State = {
  done: number;
  total: number;
  value: number;
  node: { nodeId: string; classType: string } | null;
};

type NodeStep = { readonly step: number; readonly steps: number };

/** Creates the reporter of one run of a job. */
export function createRunReporter(job: LiveJob, clock: Clock): RunReporter {
  const state: State = { done: 0, total: 0, value: 0, node: null };
  const emit = (event: JobEvent): void => job.feed.emit(event);
  const progress = (at: Partial<NodeStep> = {}): void => {
    job.progress = snapshot(state, at);
    emit({ event: 'progress', data: job.progress });
  };
  const output = (stored: StoredOutput): void => {
    job.outputs.push(stored);
    const withStep = stored.x_websocket === true && { x_with_step: true };
    emit({ event: 'output', data: { ...showOutput(stored, job.id, clock.now()), ...withStep } });
  };
  const show = ({ nodeId, uiJson, reused = [] }: ShownResult): NodeUi | undefined => {
    for (const stored of reused) output(stored);
    const ui = uiJson === undefined ? undefined : (parseJson(uiJson) as NodeUi);
    if (ui) setMember(job.ui, nodeId, ui);
    return ui;
  };
  const handlers: {
    readonly [K in WorkerEvent['type']]: (message: Extract<WorkerEvent, { type: K }>) => void;
  } = {
    begin({ cached, total, done }) {
      job.cachedNodes = cached;
      Object.assign(state, { total, done });
      emit({
        event: 'status',
        data: { status: job.status, queue_position: null, x_cached_nodes: cached },
      });
      progress();
    },
    started({ nodeId, classType }) {
      state.node = { nodeId, classType };
      emit({ event: 'x_node', data: { node_id: nodeId, phase: 'started' } });
      progress();
    },
    step: ({ step, steps }) => progress({ step, steps }),
    preview: ({ data }) => emit({ event: 'preview', data }),
    text: ({ nodeId, text }) => emit({ event: 'x_text', data: { node_id: nodeId, text } }),
    shown: show,
    finished(message) {
      const ui = show(message);
      state.done++;
      // Nodes that lazy inputs ask for are not in the total.
      state.total = Math.max(state.total, state.done);
      const shown = ui ? { ui } : message.reused && { ui: null };
      emit({ event: 'x_node', data: { node_id: message.nodeId, phase: 'finished', ...shown } });
    },
  };
  return {
    apply: (message) => (handlers[message.type] as (message: WorkerEvent) => void)(message),
    output,
    complete() {
      state.node = null;
      progress();
    },
    current: () => ({
      node_id: state.node?.nodeId ?? null,
      class_type: state.node?.classType ?? null,
    }),
  };
}

/**
 * Returns a snapshot. `value` never decreases, even when a node restarts its steps for every item
 * of a list.
 */
function snapshot(state: State, { step, steps }: Partial<NodeStep>): Progress {
  const within = step === undefined || !steps ? 0 : Math.min(1, Math.max(0, step / steps));
  const value = state.total === 0 ? 0 : Math.min(1, (state.done + within) / state.total);
  state.value = Math.max(state.value, value);
  const stepText = step === undefined ? '' : `: step ${step} of ${steps}`;
  return {
    value: state.value,
    nodes_done: state.done,
    nodes_total: state.total,
    current_node: state.node?.nodeId ?? null,
    current_node_class: state.node?.classType ?? null,
    step: step ?? null,
    steps: steps ?? null,
    message: state.node && `${state.node.classType}${stepText}`,
  };
}
