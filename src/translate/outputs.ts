import { lookup as mimeTypeOf } from 'mime-types';
import { type Json, type JsonObject, isJsonObject } from '../protocol/json.ts';
import type { FileRef, NodeOutput } from '../protocol/v1.ts';
import {
  type Graph,
  type Job,
  type NodeUi,
  type Output,
  type OutputType,
  outputTypeOf,
} from '../protocol/v2.ts';
import { addTo, classOf, displayNode, soleSink } from './graph.ts';

/** v1's name of an output. `text` is the content of a file that its node shows as a text, too. */
export type KnownFile = FileRef & { readonly text?: string };

/** v1's names by v2 output id. */
export type KnownFiles = ReadonlyMap<string, KnownFile>;

/**
 * v1's list for each family of content types. It has priority over v2's `type`, which calls a saved
 * video an image.
 */
const LIST_OF_FAMILY: ReadonlyMap<string, string> = new Map([
  ['image', 'images'],
  // The original local server lists videos as animated pictures.
  ['video', 'images'],
  ['audio', 'audio'],
  ['model', '3d'],
]);

/** Returns the output of a node in v1's form; `undefined` while a file in it has no v1 name yet. */
export function v1OutputOf(ui: NodeUi, files: KnownFiles): NodeOutput | undefined {
  const entries: [string, readonly Json[]][] = [];
  for (const [key, items] of Object.entries(ui)) {
    const shown = items.map((item) => v1ItemOf(item, files));
    if (shown.includes(undefined)) return undefined;
    entries.push([key, shown as readonly Json[]]);
  }
  return Object.fromEntries(entries);
}

/** The classes that state beside their list if the pictures are animated. v2 does not state it. */
const ANIMATED: ReadonlyMap<string, boolean> = new Map([
  ['SaveAnimatedWEBP', true],
  ['SaveAnimatedPNG', true],
  ['ImageCropV2', false],
  ['MaskPreview', false],
  ['Painter', false],
]);

/** True for a class that shows what it saves. v2 lists only its files. */
export function showsSavedText(className: string): boolean {
  return className === 'SaveText';
}

/**
 * Returns the files of a node of this class in v1's groups, when v2 does not send the node's
 * output.
 */
export function v1FilesOf(
  outputs: readonly Output[],
  files: KnownFiles,
  className: string,
): NodeOutput {
  const lists = new Map<string, Json[]>();
  for (const output of outputs) {
    const file = files.get(output.id);
    if (!file) continue;
    if (file.text !== undefined) addTo(lists, 'text', file.text);
    const [key, item] = listItemOf(output, file);
    addTo(lists, key, item);
  }
  const isAnimated = outputs.some(isVideo) || ANIMATED.get(className);
  if (isAnimated !== undefined && lists.has('images')) lists.set('animated', [isAnimated]);
  return Object.fromEntries(lists);
}

/**
 * Returns the output of a node as the hosted service documents it: with videos in a list of their
 * own. An animated file is a video unless its name is that of a picture.
 */
export function withVideoList(output: NodeOutput): NodeOutput {
  const { images = [], animated, video = [], ...more } = output;
  const moves = animated?.[0] === true;
  const isVideoFile = (item: Json): boolean => {
    const kind = kindOfFile(item);
    return kind === 'video' || (moves && kind !== undefined && kind !== 'image');
  };
  const videos = images.filter(isVideoFile);
  if (videos.length === 0) return output;
  const pictures = images.filter((item) => !isVideoFile(item));
  return {
    ...(pictures.length > 0 && { images: pictures }),
    ...more,
    video: [...video, ...videos],
  };
}

/**
 * Returns all outputs of a job so far, by node: from the node's own output, else from its files.
 */
export function v1OutputsOf(
  job: Pick<Job, 'outputs' | 'x_ui'>,
  files: KnownFiles,
  graph: Graph,
): ReadonlyMap<string, NodeOutput> {
  const owners = new Map<string, Output[]>();
  for (const output of job.outputs.filter(isListed)) addTo(owners, ownerOf(output, graph), output);
  const shown = new Map<string, NodeOutput>();
  for (const [nodeId, outputs] of owners) {
    const output = v1FilesOf(outputs, files, classOf(graph, nodeId));
    if (Object.keys(output).length > 0) shown.set(nodeId, output);
  }
  for (const [nodeId, ui] of Object.entries(job.x_ui ?? {})) {
    const output = v1OutputOf(ui, files);
    if (output) shown.set(nodeId, output);
  }
  return shown;
}

function isVideo({ content_type: contentType, type }: Output): boolean {
  return contentType.startsWith('video/') || type === 'video';
}

/** Returns the kind that the name of a file tells; `undefined` for an item that is no file. */
function kindOfFile(item: Json): OutputType | undefined {
  if (!isJsonObject(item) || typeof item.filename !== 'string') return undefined;
  return outputTypeOf(mimeTypeOf(item.filename) || '');
}

/**
 * True when an output is in v1's lists. Images that are sent over the socket only are in no list.
 */
export function isListed(output: Output): boolean {
  return output.x_websocket !== true;
}

/**
 * Returns the node that an output belongs to. An output without a node belongs to the only node
 * that is possible.
 */
export function ownerOf(output: Output, graph: Graph): string {
  if (displayNode(graph, output.node_id) !== undefined) return output.node_id;
  return soleSink(graph) ?? output.node_id;
}

function v1ItemOf(item: Json, files: KnownFiles): Json | undefined {
  if (!isJsonObject(item) || typeof item.x_asset !== 'string') return item;
  const file = files.get(item.x_asset);
  if (!file) return undefined;
  const { x_asset: _, ...more } = item;
  return { ...refOf(file), ...more };
}

function listItemOf(output: Output, file: KnownFile): readonly [string, Json] {
  const family = output.content_type.split('/')[0] ?? '';
  if (output.type === 'latent') return ['latents', refOf(file)];
  const key = LIST_OF_FAMILY.get(family) ?? LIST_OF_FAMILY.get(output.type) ?? 'files';
  return [key, refOf(file)];
}

function refOf({ filename, subfolder, type, id }: FileRef): JsonObject {
  return { filename, subfolder, type, ...(id !== undefined && { id }) };
}
