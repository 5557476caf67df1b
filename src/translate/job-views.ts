import { lookup as mimeTypeOf } from 'mime-types';
import { isoTime } from '../lib/clock.ts';
import { type Json, type JsonObject, isJsonObject, stringifyJson } from '../protocol/json.ts';
import type { HistoryEntry, StatusWord } from '../protocol/v1.ts';
import { type Submitted, workflowIdOf } from './history.ts';
import { LISTED_STATUS } from './status.ts';

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
  readonly submitted: Omit<Submitted, 'graph' | 'targets'>;
};

/** Lists in a node's output that hold facts about files, not files. */
const NOT_MEDIA = new Set(['animated']);

/** Returns an item of `GET /api/jobs`. Unknown members are left out. */
export function jobItem(view: ItemView): JsonObject {
  const { submitted } = view;
  const status = LISTED_STATUS[view.word];
  const error = errorMessage(view.entry);
  return defined({
    id: submitted.promptId,
    status,
    priority: submitted.number,
    create_time: view.createdAtMs,
    // v1 knows the start from the history only.
    execution_start_time: view.entry && view.startedAtMs,
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
  const error = errorMessage(view.entry);
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

/** An entry in a node's output as `/api/jobs` counts it, with its node and the kind of its list. */
type Shown = JsonObject & { readonly nodeId: string; readonly mediaType: string };

/** Returns the counts of an entry's outputs, and the one that stands for them. */
export function outputsSummary(entry: HistoryEntry | null): JsonObject {
  const outputs = entry?.outputs ?? {};
  const files = shownFiles(outputs);
  const previewable = files.filter(isPreviewable);
  const media = previewable.filter((file) => !isTextFile(file));
  // A saved picture is preferred to a preview, any picture to a saved text, and that to a text.
  const preview =
    media.find(({ type }) => type === 'output') ??
    media[0] ??
    previewable[0] ??
    textPreview(outputs);
  return {
    outputs_count: files.length,
    previewable_outputs_count: previewable.length,
    ...(preview && { preview_output: preview }),
  };
}

type Listed = { readonly nodeId: string; readonly mediaType: string; readonly item: Json };

function* listedItems(outputs: HistoryEntry['outputs']): Generator<Listed, undefined> {
  for (const [nodeId, lists] of Object.entries(outputs))
    for (const [mediaType, items] of Object.entries(lists))
      if (!NOT_MEDIA.has(mediaType) && Array.isArray(items))
        for (const item of items as readonly Json[]) yield { nodeId, mediaType, item };
}

function shownFiles(outputs: HistoryEntry['outputs']): readonly Shown[] {
  return [...listedItems(outputs)].flatMap(({ nodeId, mediaType, item }) => {
    const file = fileOf(item);
    return file ? { mediaType, ...file, nodeId } : [];
  });
}

const MODEL_FILE = /\.(obj|fbx|gltf|glb|usdz)$/i;
const TEXT_FILE = /\.(txt|md|json)$/i;

/** Returns the file of an entry. Nodes for 3D show the bare name of a file. */
function fileOf(item: Json): JsonObject | undefined {
  if (isJsonObject(item)) return item;
  const isModel = typeof item === 'string' && MODEL_FILE.test(item);
  return isModel ? { filename: item, type: 'output', subfolder: '', mediaType: '3d' } : undefined;
}

const PREVIEWABLE = new Set(['images', 'video', 'audio', '3d', 'text']);

function isPreviewable({ mediaType, format, filename }: Shown): boolean {
  return (
    PREVIEWABLE.has(mediaType) ||
    (typeof format === 'string' && /^(video|audio)\//.test(format)) ||
    (typeof filename === 'string' && (MODEL_FILE.test(filename) || TEXT_FILE.test(filename)))
  );
}

function isTextFile({ mediaType, filename }: Shown): boolean {
  return mediaType === 'text' || (typeof filename === 'string' && TEXT_FILE.test(filename));
}

const MAX_PREVIEW_CHARS = 1024;

/** Returns the first text of an ended prompt. Texts are not counted as outputs. */
function textPreview(outputs: HistoryEntry['outputs']): JsonObject | undefined {
  for (const { nodeId, mediaType, item } of listedItems(outputs)) {
    if (mediaType !== 'text' || item === null || isJsonObject(item)) continue;
    const characters = Array.from(String(Array.isArray(item) ? (item[0] ?? '') : item));
    const content = characters.slice(0, MAX_PREVIEW_CHARS).join('');
    const isCut = characters.length > MAX_PREVIEW_CHARS;
    return { content, ...(isCut && { truncated: true }), nodeId, mediaType };
  }
  return undefined;
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
  return new Set(files.map((file) => outputTypeOf(file)));
}

function outputTypeOf({ filename, mediaType }: Shown): string {
  const type = typeof filename === 'string' && mimeTypeOf(filename);
  const [kind] = (type || mediaType).split('/', 1);
  if (kind === 'model') return '3d';
  return kind === 'images' ? 'image' : (kind ?? mediaType);
}

/** Returns the error with which an ended prompt failed. */
export function errorMessage(entry: HistoryEntry | null): Json | undefined {
  const message = entry?.status.messages.find(([name]) => name === 'execution_error');
  return message?.[1] as unknown as Json | undefined;
}

function defined(members: { readonly [key: string]: Json | undefined }): JsonObject {
  const kept = Object.entries(members).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(kept) as JsonObject;
}
