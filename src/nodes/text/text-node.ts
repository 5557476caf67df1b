import type { NodeContext, NodeDef, Value, ImageValue, MaskValue } from '../node.ts';
import { isJsonObject, type Json } from '../../protocol/json.ts';
import { pythonFloat, pythonJson } from '../../protocol/python-json.ts';
import { isInsidePair } from './pieces.ts';

/** The declaration of an input in nearly every text node. */
export const MULTILINE = ['STRING', { multiline: true }] as const;

/** The members that all text nodes share. */
export const TEXT = {
  category: 'utils/string',
  pythonModule: 'comfy_extras.nodes_string',
  style: 'v3',
  outputs: [{ type: 'STRING' }],
} as const;

/** The node that shows any input as text. */
export const PREVIEW_ANY: NodeDef = {
  name: 'PreviewAny',
  displayName: 'Preview Any',
  category: 'utils',
  pythonModule: 'comfy_extras.nodes_preview_any',
  required: { source: ['*', {}] },
  outputs: [],
  outputNode: true,
  run: (inputs, context) => ({
    outputs: [],
    ui: { text: [withinRoom(shown(inputs['source'] ?? null, context), context)] },
  }),
};

/** Returns the text up to the limit: every reader of the job gets it. */
function withinRoom(text: string, context: NodeContext): string {
  const room = context.reserveShown(text.length);
  if (room >= text.length) return text;
  return `${text.slice(0, isInsidePair(text, room) ? room - 1 : room)}… (shortened from ${text.length} characters)`;
}

/** Returns plain values as Python's `str()` shows them, others as JSON. */
function shown(value: Value | Json, context: NodeContext): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number' && isFloat(value, context)) return pythonFloat(value);
  if (typeof value !== 'object') return String(value);
  return isPixels(value) ? sizeOf(value) : pythonJson(value);
}

/** True for a FLOAT. A whole number may be one: only the type of its output tells. */
function isFloat(value: number, context: NodeContext): boolean {
  return context.inputTypes?.['source'] === 'FLOAT' || !Number.isInteger(value);
}

/**
 * True for pixels. An input of type `*` also accepts a literal object or array, which arrives as it
 * is in the workflow.
 */
function isPixels(value: ImageValue | MaskValue | Json): value is ImageValue | MaskValue {
  return isJsonObject(value as Json) && (value as Partial<ImageValue>).data instanceof Float32Array;
}

/** Returns the size of a picture. v1 prints its numbers, but the size says more. */
function sizeOf({ kind, batch, height, width }: ImageValue | MaskValue): string {
  return `${kind} ${width}×${height}, batch of ${batch}`;
}
