import { type Json, LosslessNumber, isJsonObject, prettyJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { FileInput, WorkflowFile } from './session-plan.ts';

/** The file that an asset reference in a workflow names. */
export type ReferenceInfo = { readonly id: string; readonly filePath: string | undefined };

/** Returns the text of a workflow, with a placeholder in place of each file reference. */
export function workflowText(
  workflow: Graph,
  sourceOf: (info: ReferenceInfo) => FileInput['from'],
): Omit<WorkflowFile, 'path'> {
  const inputs: FileInput[] = [];
  const unusedPlaceholder = placeholderAllocator(workflow);
  const rewrittenNodes = Object.entries(workflow).map(([node, entry]) => {
    const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(
      ([input, value]): [string, Json] => {
        const info = assetReferenceIn(value);
        if (!info) return [input, value];
        const from = sourceOf(info);
        const placeholder = unusedPlaceholder(from);
        inputs.push({ node, input, placeholder, from });
        return [input, placeholder];
      },
    );
    return [node, { ...entry, inputs: Object.fromEntries(rewrittenInputs) }];
  });
  const graph = Object.fromEntries(rewrittenNodes) as Json;
  return { text: prettyJson(graph), inputs, hasExactNumbers: hasExactNumbers(graph) };
}

/**
 * Returns a function that makes placeholders such as `@inputs/cat.png`, with more `@` when the workflow contains that
 * text. Reads the workflow only once, because it may be long and have thousands of references.
 */
function placeholderAllocator(workflow: Graph): (from: FileInput['from']) => string {
  const used = new Set<string>();
  for (const { inputs } of Object.values(workflow)) collectMarked((inputs ?? {}) as Json, used);
  const known = new Map<string, string>();
  return (from) => {
    const name = placeholderName(from);
    let placeholder = known.get(name) ?? `@${name}`;
    while (used.has(placeholder)) placeholder = `@${placeholder}`;
    known.set(name, placeholder);
    return placeholder;
  };
}

/** Collects the texts and names that could be mistaken for a placeholder. */
function collectMarked(value: Json, found: Set<string>): void {
  if (typeof value === 'string') {
    if (value.startsWith('@')) found.add(value);
  } else if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) collectMarked(item, found);
  } else if (isJsonObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      if (name.startsWith('@')) found.add(name);
      collectMarked(item, found);
    }
  }
}

function placeholderName(from: FileInput['from']): string {
  if (from.kind === 'file') return from.file.path;
  const { job, node, index } = from.place;
  return `${job}/${node.replaceAll(/[^\w-]/g, '_')}/${index}`;
}

function assetReferenceIn(value: Json): ReferenceInfo | undefined {
  if (!isJsonObject(value) || value['__type'] !== 'core/ASSET') return undefined;
  const { info } = value;
  if (!isJsonObject(info) || typeof info['id'] !== 'string') return undefined;
  const filePath = info['file_path'];
  return { id: info['id'], filePath: typeof filePath === 'string' ? filePath : undefined };
}

function hasExactNumbers(value: Json): boolean {
  if (value instanceof LosslessNumber) return true;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((item) => hasExactNumbers(item as Json));
}
