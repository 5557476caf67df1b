import type { NodeContext, NodeDef, Value } from '../node.ts';
import { entriesInOrder, isJsonObject, type Json } from '../../protocol/json.ts';
import { pythonFloat, pythonJson } from '../../protocol/python-json.ts';
import { pythonStr } from '../../protocol/python-text.ts';
import { isPixels } from '../tensor.ts';
import { createTextPieces, isInsidePair } from './pieces.ts';

/** The declaration of an input in nearly every text node. */
export const MULTILINE = ['STRING', { multiline: true }] as const;

/** The members that all text nodes share. */
export const TEXT = {
  category: 'text',
  pythonModule: 'comfy_extras.nodes_string',
  style: 'v3',
  outputs: [{ type: 'STRING' }],
} as const;

/** The node that shows any input as text. */
export const PREVIEW_ANY: NodeDef = {
  name: 'PreviewAny',
  displayName: 'Preview as Text',
  category: 'utilities',
  pythonModule: 'comfy_extras.nodes_preview_any',
  required: { source: ['*', {}] },
  outputs: [{ type: 'STRING' }],
  outputNode: true,
  run(inputs, context) {
    const text = shown(inputs['source'] ?? null, context);
    return { outputs: [text], ui: { text: [withinRoom(text, context)] } };
  },
};

/** Returns the text up to the limit: every reader of the job gets it. */
export function withinRoom(text: string, context: NodeContext): string {
  const room = context.reserveShown(text.length);
  if (room >= text.length) return text;
  return `${text.slice(0, isInsidePair(text, room) ? room - 1 : room)}… (shortened from ${text.length} characters)`;
}

/** Returns objects and lists as JSON, other values as Python's `str()` shows them. */
function shown(value: Value, context: NodeContext): string {
  if (typeof value === 'object' && value !== null && !isPixels(value))
    return jsonLines(value as Json, '    ', context);
  return plainText({ value, isFloat: context.inputTypes?.['source'] === 'FLOAT' });
}

/** A value. Only the type of its output tells if a whole number is a FLOAT. */
export type Shown = { readonly value: Value; readonly isFloat: boolean };

/** Returns a value as Python's `str()` does; of pixels the size, which says more than the numbers. */
export function plainText({ value, isFloat }: Shown): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && isFloat) return pythonFloat(value);
  if (!isPixels(value)) return pythonStr(value as Json);
  const { kind, batch, height, width } = value;
  return `${kind} ${width}×${height}, batch of ${batch}`;
}

/** Writes a value as JSON with a line for each item, indented by `gap`. */
export function jsonLines(value: Json, gap: string, context: NodeContext): string {
  const pieces = createTextPieces(context);
  addLines(value, { lineStart: '\n', gap }, (piece) => {
    context.check();
    pieces.add(piece);
  });
  return pieces.text();
}

type Indentation = { readonly lineStart: string; readonly gap: string };

/** `lineStart` begins the lines of the value's level. */
function addLines(
  value: Json,
  { lineStart, gap }: Indentation,
  add: (piece: string) => void,
): void {
  const isList = Array.isArray(value);
  const items = isList ? value.map((item: Json) => ['', item] as const) : namedItems(value);
  if (items === undefined)
    return add(typeof value === 'string' ? JSON.stringify(value) : pythonJson(value));
  if (items.length === 0) return add(isList ? '[]' : '{}');
  const itemStart = lineStart + gap;
  for (const [index, [name, item]] of items.entries()) {
    const before = index > 0 ? ',' : isList ? '[' : '{';
    add(before + itemStart + name);
    addLines(item, { lineStart: itemStart, gap }, add);
  }
  add(`${lineStart}${isList ? ']' : '}'}`);
}

function namedItems(value: Json): readonly (readonly [name: string, item: Json])[] | undefined {
  if (!isJsonObject(value)) return undefined;
  return entriesInOrder(value).map(([key, item]) => [`${JSON.stringify(key)}: `, item]);
}
