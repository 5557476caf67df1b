import type { Clock } from '../../lib/clock.ts';
import { parseJson, setMember } from '../../protocol/json.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import type { JobError, NodeUi, Progress } from '../../protocol/v2.ts';
import { showOutput } from '../job-links.ts';
import type { LiveJob } from './live-job.ts';
import type { FromWorker, ShownResult, StoredOutput } from './worker-protocol.ts';

type WorkerEvent = Exclude<FromWorker, { type: 'end' | 'request' }>;

type State = {
  done: number;
  total: number;
  value: number;
  node: { nodeId: string; classType: string } | null;
};

type Message<Type extends WorkerEvent['type']> = Extract<WorkerEvent, { type: Type }>;

type NodeStep = { readonly step: number; readonly steps: number };

/**
 * Applies the messages of a worker to the state of one run of a job, and emits the events of the job in the same order.
 */
export class RunReporter {
  readonly #job: LiveJob;
  readonly #clock: Clock;
  readonly #state: State = { done: 0, total: 0, value: 0, node: null };

  constructor(job: LiveJob, clock: Clock) {
    this.#job = job;
    this.#clock = clock;
  }

  apply(message: WorkerEvent): void {
    switch (message.type) {
      case 'begin':
        return this.#begin(message);
      case 'started':
        return this.#started(message);
      case 'step':
        return this.#progress({ step: message.step, steps: message.steps });
      case 'preview':
        return this.#emit({ event: 'preview', data: message.data });
      case 'text':
        return this.#emit({
          event: 'x_text',
          data: { node_id: message.nodeId, text: message.text },
        });
      case 'shown':
        return void this.#show(message);
      case 'finished':
        return this.#finished(message);
    }
  }

  output(stored: StoredOutput): void {
    const { outputs, id } = this.#job;
    outputs.push(stored);
    const withStep = stored.x_websocket === true && { x_with_step: true };
    const data = { ...showOutput(stored, id, this.#clock.now()), ...withStep };
    this.#emit({ event: 'output', data });
  }

  /** Emits the last progress of a job when all its nodes are done. */
  complete(): void {
    this.#state.node = null;
    this.#progress();
  }

  /** The node that runs, or ran last. */
  current(): Pick<JobError, 'node_id' | 'class_type'> {
    const { node } = this.#state;
    return { node_id: node?.nodeId ?? null, class_type: node?.classType ?? null };
  }

  #begin({ cached, total, done }: Message<'begin'>): void {
    const { status } = this.#job;
    this.#job.cachedNodes = cached;
    Object.assign(this.#state, { total, done });
    const data = { status, queue_position: null, x_cached_nodes: cached };
    this.#emit({ event: 'status', data });
    this.#progress();
  }

  #started({ nodeId, classType }: Message<'started'>): void {
    this.#state.node = { nodeId, classType };
    this.#emit({ event: 'x_node', data: { node_id: nodeId, phase: 'started' } });
    this.#progress();
  }

  #finished(message: Message<'finished'>): void {
    const ui = this.#show(message);
    const state = this.#state;
    state.done++;
    // Nodes that lazy inputs ask for are not in the total.
    state.total = Math.max(state.total, state.done);
    const shown = ui ? { ui } : message.reused && { ui: null };
    const data = { node_id: message.nodeId, phase: 'finished', ...shown } as const;
    this.#emit({ event: 'x_node', data });
  }

  #show({ nodeId, uiJson, reused = [] }: ShownResult): NodeUi | undefined {
    for (const stored of reused) this.output(stored);
    const ui = uiJson === undefined ? undefined : (parseJson(uiJson) as NodeUi);
    if (ui) setMember(this.#job.ui, nodeId, ui);
    return ui;
  }

  #progress(at: Partial<NodeStep> = {}): void {
    this.#job.progress = snapshot(this.#state, at);
    this.#emit({ event: 'progress', data: this.#job.progress });
  }

  #emit(event: JobEvent): void {
    this.#job.feed.emit(event);
  }
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
