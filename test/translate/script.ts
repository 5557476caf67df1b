import type {
  ProgressEffect,
  ProgressInput,
  ProgressState,
} from '../../src/translate/progress/progress-state.ts';
import { type Submitted, historySteps } from '../../src/translate/history.ts';
import { initialProgress } from '../../src/translate/progress/progress-state.ts';
import { reduceProgress } from '../../src/translate/progress/progress.ts';
import { parseEntry } from '../../src/translate/stored-history-entry.ts';
import { type Json, stringifyJson } from '../../src/protocol/json.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import type { FileRef, HistoryEntry, V1Message } from '../../src/protocol/v1.ts';
import type { Graph, Job, JobStatus, NodeUi, Output } from '../../src/protocol/v2.ts';

export const PROMPT_ID = 'prompt-1';
export const JPEG = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0);

/** A frame one socket receives: a JSON message, or a picture or text by its frame type. */
export type Frame = { readonly type: string; readonly data?: unknown; readonly node?: string };

export type Run = { readonly state: ProgressState; readonly effects: readonly ProgressEffect[] };

export function runScript(graph: Graph, inputs: readonly ProgressInput[]): Run {
  let state = initialProgress(PROMPT_ID, graph);
  const effects: ProgressEffect[] = [];
  for (const input of inputs) {
    const turn = reduceProgress(Object.freeze(state), input);
    state = turn.state;
    effects.push(...turn.effects);
  }
  return { state, effects };
}

export function historyEntry(state: ProgressState, submitted: Submitted): HistoryEntry {
  const graphJson = stringifyJson(submitted.graph as Json);
  const texts = { graphJson, extraDataJson: stringifyJson(submitted.extraData) };
  const entryJson = runSteps(historySteps(state, submitted, texts));
  return parseEntry({ entryJson }, 'own');
}

/** The frames of a socket, which has or has not negotiated previews with metadata. */
export function framesOf(
  effects: readonly ProgressEffect[],
  pictures: 'binary 1' | 'binary 4' = 'binary 1',
): Frame[] {
  return effects.flatMap((effect): Frame[] => {
    switch (effect.kind) {
      case 'json':
        return [effect.message];
      case 'step': {
        const { state, progress, picture } = effect;
        const shown = picture ? [{ type: pictures, node: picture.nodeId }] : [];
        const states = state ? [state] : [];
        return pictures === 'binary 4'
          ? [...states, ...shown, progress]
          : [...states, progress, ...shown];
      }
      case 'picture':
        return [{ type: pictures, node: effect.picture.nodeId }];
      case 'text':
        return [{ type: 'binary 3', node: effect.nodeId, data: effect.text }];
      case 'end':
        return [effect.closing];
    }
  });
}

export function messages(effects: readonly ProgressEffect[]): V1Message[] {
  return framesOf(effects).filter((frame): frame is V1Message => !frame.type.startsWith('binary'));
}

export function typesOf(effects: readonly ProgressEffect[]): string[] {
  return framesOf(effects).map(({ type }) => type);
}

export function messageOf<T extends V1Message['type']>(
  effects: readonly ProgressEffect[],
  type: T,
) {
  const found = messages(effects).find((message) => message.type === type);
  return found?.data as Extract<V1Message, { type: T }>['data'] | undefined;
}

export const status = (value: JobStatus, x_cached_nodes?: readonly string[]): ProgressInput => ({
  kind: 'event',
  event: { event: 'status', data: { status: value, ...(x_cached_nodes && { x_cached_nodes }) } },
  atMs: 10,
});

export const started = (node_id: string): ProgressInput => ({
  kind: 'event',
  event: { event: 'x_node', data: { node_id, phase: 'started' } },
  atMs: 20,
});

export const finished = (node_id: string, ui?: NodeUi | null): ProgressInput => ({
  kind: 'event',
  event: { event: 'x_node', data: { node_id, phase: 'finished', ...(ui !== undefined && { ui }) } },
  atMs: 30,
});

export const progress = (
  current_node: string | null,
  at: { step?: number; steps?: number; value?: number; x_polled?: boolean } = {},
  atMs = 25,
): ProgressInput => ({
  kind: 'event',
  event: {
    event: 'progress',
    data: { value: 0.5, nodes_done: 1, nodes_total: 3, current_node, ...at },
  },
  atMs,
});

export const preview = (
  node_id: string,
  when: 'now' | 'with-step' = 'now',
  atMs = 25,
): ProgressInput => ({
  kind: 'event',
  event: {
    event: 'preview',
    data: {
      node_id,
      content_type: 'image/jpeg',
      bytes: JPEG,
      ...(when === 'with-step' && { x_with_step: true }),
    },
  },
  atMs,
});

export const text = (node_id: string, content: string): ProgressInput => ({
  kind: 'event',
  event: { event: 'x_text', data: { node_id, text: content } },
  atMs: 25,
});

export const idle = (atMs: number): ProgressInput => ({ kind: 'idle', atMs });

export const fileRef = (filename: string, type: FileRef['type'] = 'output'): FileRef => ({
  filename,
  subfolder: '',
  type,
});

export function outputOf(id: string, node_id: string, more: Partial<Output> = {}): Output {
  return {
    node_id,
    name: `${id}.png`,
    type: 'image',
    content_type: 'image/png',
    size_bytes: 1,
    id,
    hash: null,
    url: `/api/v2/assets/${id}/content`,
    url_expires_at: '2030-01-01T00:00:00.000Z',
    ...more,
  };
}

export const output = (
  made: Output & { x_with_step?: boolean },
  file = fileRef(made.name),
  atMs = 28,
): ProgressInput => ({
  kind: 'output',
  output: made,
  file,
  atMs,
});

export function jobOf(more: Partial<Job> = {}): Job {
  return {
    id: 'job-1',
    status: 'succeeded',
    created_at: '2026-01-01T00:00:00.000Z',
    started_at: '2026-01-01T00:00:00.000Z',
    completed_at: null,
    expires_at: '2026-01-02T00:00:00.000Z',
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    urls: { self: '', events: '', cancel: '' },
    ...more,
  };
}

export function filesOf(job: Job): Map<string, FileRef> {
  return new Map(job.outputs.map(({ id, name }) => [id, fileRef(name)]));
}

export function settled(
  more: Partial<Job> = {},
  files?: ReadonlyMap<string, FileRef>,
): ProgressInput {
  const job = jobOf(more);
  return { kind: 'settled', job, files: files ?? filesOf(job), atMs: 100 };
}

export function snapshot(more: Partial<Job> = {}, atMs = 50): ProgressInput {
  const job = jobOf({ status: 'running', ...more });
  return { kind: 'snapshot', job, files: filesOf(job), atMs };
}

/** A graph of the given classes, each node fed by the one before it. */
export function chain(...classes: readonly (readonly [id: string, className: string])[]): Graph {
  const entries = classes.map(([id, class_type], i) => {
    const before = classes[i - 1];
    const inputs: { [name: string]: Json } = before ? { image: [before[0], 0] } : {};
    return [id, { class_type, inputs }] as const;
  });
  return Object.fromEntries(entries);
}
