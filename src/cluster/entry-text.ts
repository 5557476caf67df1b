import type { Input } from '../translate/progress-state.ts';
import { type Entry, PREVIEW_HEAD_BYTES } from '../v1/prompt-journal.ts';
import { type Json, parseJson, stringifyJson } from '../wire/json.ts';
import type { FileRef } from '../wire/v1.ts';

/** An entry as it is stored; the bytes of a preview travel beside it, or not at all. */
export type EntryText = { readonly text: string; readonly picture?: Uint8Array };

type Preview = Extract<Input, { kind: 'event' }> & { readonly event: { event: 'preview' } };
type WithFiles = Extract<Input, { files: unknown }>;

export function textOf(entry: Entry): EntryText {
  if (entry.kind !== 'input') return { text: JSON.stringify(entry) };
  const { input } = entry;
  if ('files' in input) return { text: written({ ...input, files: [...input.files] }) };
  if (!isPreview(input)) return { text: written(input) };
  const { bytes, ...data } = input.event.data;
  const head = Buffer.from(bytes.subarray(0, PREVIEW_HEAD_BYTES)).toString('base64');
  return { text: written({ ...input, event: { event: 'preview', data, head } }), picture: bytes };
}

/** Without the picture, its first bytes stand for it: the step it belongs to is said all the same. */
export function entryOf(text: string, picture?: Uint8Array): Entry {
  const entry = parseJson(text) as unknown as Entry;
  if (entry.kind !== 'input') return entry;
  const { input } = entry;
  if ('files' in input) return { kind: 'input', input: withFiles(input) };
  if (!isPreview(input)) return entry;
  const { head, data } = input.event as unknown as { head: string; data: object };
  const bytes = picture ?? Buffer.from(head, 'base64');
  const event = { event: 'preview', data: { ...data, bytes } } as Preview['event'];
  return { kind: 'input', input: { ...input, event } };
}

function withFiles(input: WithFiles): WithFiles {
  return { ...input, files: new Map(input.files as unknown as [string, FileRef][]) };
}

function written(input: object): string {
  return stringifyJson({ kind: 'input', input } as unknown as Json);
}

function isPreview(input: Input): input is Preview {
  return input.kind === 'event' && input.event.event === 'preview';
}
