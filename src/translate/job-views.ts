import { lookup as mimeTypeOf } from 'mime-types';
import { type Json, type JsonObject, isJsonObject, stringifyJson } from '../protocol/json.ts';
import type { FileRef, HistoryEntry, StatusWord } from '../protocol/v1.ts';
import { type Submitted, workflowIdOf } from './history.ts';
import { listedStatus } from './status.ts';

/** A prompt for `/api/jobs` and `/api/job/{id}/status`. It has an `entry` when it has ended. */
export type JobView = {
  readonly submitted: Submitted;
  readonly word: StatusWord;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly entry: HistoryEntry | null;
};

/** The part of a view that an item of the list shows. */
export type ItemView = Omit<JobView, 'submitted'> & {
  readonly submitted: Pick<Submitted, 'promptId' | 'number' | 'extraData'>;
};

/** Lists in a node's output that hold facts about files, not files. */
const NOT_MEDIA = new Set(['animated']);

/** Returns an item of `GET /api/jobs`. Unknown members are left out. */
export function jobItem(view: ItemView): JsonObject {
  const { submitted } = view;
  const status = listedStatus(view.word);
  const error = endMessage(view.entry, 'execution_error');
  return defined({
    id: submitted.promptId,
    status,
    priority: submitted.number,
    create_time: view.createdAtMs,
    execution_start_time: view.startedAtMs,
    execution_end_time: view.endedAtMs,
    ...outputsSummary(view.entry),
    ...workflowIdOf(submitted.extraData),
    execution_error: status === 'failed' ? (error ?? null) : null,
  });
}

/**
 * Returns `GET /api/jobs/{id}`: the item, its outputs, and the workflow from which it can be loaded
 * again.
 */
export function jobDetail(view: JobView): JsonObject {
  const { graph, extraData } = view.submitted;
  return {
    ...jobItem(view),
    update_time: view.endedAtMs ?? view.startedAtMs ?? view.createdAtMs,
    outputs: (view.entry?.outputs ?? {}) as JsonObject,
    ...(view.entry && { execution_status: view.entry.status }),
    workflow: { prompt: graph as Json, extra_data: extraData },
  };
}

/**
 * Returns `GET /api/job/{id}/status`. `error_message` is the error record as JSON text, as the
 * hosted API sends it.
 */
export function jobStatus(view: JobView): JsonObject {
  const error = endMessage(view.entry, 'execution_error');
  const updatedAt = isoTime(view.endedAtMs ?? view.startedAtMs ?? view.createdAtMs);
  return {
    id: view.submitted.promptId,
    status: view.word,
    created_at: isoTime(view.createdAtMs),
    updated_at: updatedAt,
    last_state_update: updatedAt,
    assigned_inference: null,
    error_message: error === undefined ? null : stringifyJson(error),
  };
}

type Shown = FileRef & { readonly nodeId: string; readonly mediaType: string };

function outputsSummary(entry: HistoryEntry | null): JsonObject {
  const files = entry ? shownFiles(entry.outputs) : [];
  // A saved file is preferred to a preview.
  const preview = files.find(({ type }) => type === 'output') ?? files[0];
  return {
    outputs_count: files.length,
    ...(entry && { previewable_outputs_count: files.length }),
    ...(preview && { preview_output: preview }),
  };
}

function shownFiles(outputs: HistoryEntry['outputs']): readonly Shown[] {
  return Object.entries(outputs).flatMap(([nodeId, lists]) =>
    Object.entries(lists)
      .filter(([mediaType]) => !NOT_MEDIA.has(mediaType))
      .flatMap(([mediaType, items]) =>
        items.filter(isFile).map((file) => ({ ...file, nodeId, mediaType })),
      ),
  );
}

/** The kinds of media by which `GET /api/jobs?output_type=` filters. */
export const MEDIA_KINDS = ['image', 'video', 'audio', '3d'] as const;
export type MediaKind = (typeof MEDIA_KINDS)[number];

/**
 * Returns the kinds of a job's outputs, by the names of the files, else by the names of their
 * lists.
 */
export function outputTypesOf({ entry }: ItemView): ReadonlySet<string> {
  const files = entry ? shownFiles(entry.outputs) : [];
  return new Set(files.map(({ filename, mediaType }) => outputTypeOf(filename, mediaType)));
}

function outputTypeOf(filename: string, mediaType: string): string {
  const [kind] = (mimeTypeOf(filename) || mediaType).split('/', 1);
  if (kind === 'model') return '3d';
  return kind === 'images' ? 'image' : (kind ?? mediaType);
}

function isFile(item: Json): item is FileRef & JsonObject {
  return isJsonObject(item) && typeof item.filename === 'string';
}

function endMessage(entry: HistoryEntry | null, type: 'execution_error'): Json | undefined {
  const message = entry?.status.messages.find(([name]) => name === type);
  return message?.[1] as unknown as Json | undefined;
}

function defined(members: { readonly [key: string]: Json | undefined }): JsonObject {
  const kept = Object.entries(members).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(kept) as JsonObject;
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
