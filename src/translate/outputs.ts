import { type Json, isJsonObject } from '../wire/json.ts';
import type { NodeUi, Output, OutputType } from '../wire/v2.ts';
import type { FileRef, NodeOutput } from '../wire/v1.ts';

/** The v1 list each kind of output goes into when its content type does not say. */
const KEY_OF_TYPE = {
  image: 'images',
  video: 'video',
  audio: 'audio',
  text: 'text',
  file: 'files',
  latent: 'latents',
} as const satisfies Record<OutputType, string>;

const KEY_OF_MEDIA: { readonly [media: string]: string } = {
  image: 'images',
  video: 'video',
  audio: 'audio',
};

/** Media type first: the original reports videos as images. */
export function outputKey(output: Pick<Output, 'type' | 'content_type'>): string {
  const media = output.content_type.split('/', 1)[0] ?? '';
  return KEY_OF_MEDIA[media] ?? KEY_OF_TYPE[output.type];
}

/** Adds one file to what a node has shown so far. */
export function withFile(shown: NodeOutput, output: Output, file: FileRef): NodeOutput {
  const key = outputKey(output);
  return { ...shown, [key]: [...(shown[key] ?? []), file] };
}

/** A node's own account of what it shows, its `{x_asset: id}` items replaced by v1 file references. */
export function resolveUi(ui: NodeUi, files: ReadonlyMap<string, FileRef>): NodeOutput {
  const entries = Object.entries(ui).map(([key, items]) => [key, items.map((item) => resolve(item, files))]);
  return Object.fromEntries(entries) as NodeOutput;
}

function resolve(item: Json, files: ReadonlyMap<string, FileRef>): Json {
  if (!isJsonObject(item) || typeof item.x_asset !== 'string') return item;
  return files.get(item.x_asset) ?? item;
}
