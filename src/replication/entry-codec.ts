import type { ProgressInput } from '../translate/progress-state.ts';
import { type PromptLogEntry, PREVIEW_HEAD_BYTES } from '../prompts/prompt-event-log.ts';
import { type Json, parseJson, stringifyJson } from '../protocol/json.ts';
import type { FileRef } from '../protocol/v1.ts';

/** An entry as it is stored. The bytes of a preview are sent beside it, or not at all. */
export type EncodedEntry = { readonly text: string; readonly picture?: Uint8Array };

type Preview = Extract<ProgressInput, { kind: 'event' }> & { readonly event: { event: 'preview' } };
type WithFiles = Extract<ProgressInput, { files: unknown }>;

export function encodeEntry(entry: PromptLogEntry): EncodedEntry {
  if (entry.kind !== 'input') return { text: JSON.stringify(entry) };
  const { input } = entry;
  if ('files' in input) return { text: encodeInput({ ...input, files: [...input.files] }) };
  if (!isPreview(input)) return { text: encodeInput(input) };
  const { bytes, ...data } = input.event.data;
  const head = Buffer.from(bytes.subarray(0, PREVIEW_HEAD_BYTES)).toString('base64');
  return {
    text: encodeInput({ ...input, event: { event: 'preview', data, head } }),
    picture: bytes,
  };
}

/** Without the picture, its first bytes stand in for it: its step is sent all the same. */
export function decodeEntry(text: string, picture?: Uint8Array): PromptLogEntry {
  const entry = parseJson(text) as unknown as PromptLogEntry;
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

function encodeInput(input: object): string {
  return stringifyJson({ kind: 'input', input } as unknown as Json);
}

function isPreview(input: ProgressInput): input is Preview {
  return input.kind === 'event' && input.event.event === 'preview';
}
