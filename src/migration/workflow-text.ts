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
  const rewrittenNodes = Object.entries(workflow).map(([node, entry]) => {
    const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(
      ([input, value]): [string, Json] => {
        const info = assetReferenceIn(value);
        if (!info) return [input, value];
        const from = sourceOf(info);
        inputs.push({ node, input, from });
        return [input, placeholderOf(from)];
      },
    );
    return [node, { ...entry, inputs: Object.fromEntries(rewrittenInputs) }];
  });
  const graph = Object.fromEntries(rewrittenNodes) as Json;
  return { text: prettyJson(graph), inputs, hasExactNumbers: hasExactNumbers(graph) };
}

/** Returns a text such as `@inputs/cat.png`. The code sets the input to the file itself. */
function placeholderOf(from: FileInput['from']): string {
  if (from.kind === 'file') return `@${from.file.path}`;
  const { job, node, index } = from.place;
  return `@${job}/${node}/${index}`;
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
