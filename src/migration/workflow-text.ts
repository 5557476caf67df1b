import { type Json, LosslessNumber, isJsonObject, prettyJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { FileInput, WorkflowFile } from './session-plan.ts';

/** The file a workflow's asset reference names. */
export type ReferenceInfo = { readonly id: string; readonly filePath: string | undefined };

/** The workflow with a mark in place of each file reference. */
export function workflowText(
  workflow: Graph,
  sourceOf: (info: ReferenceInfo) => FileInput['from'],
): Omit<WorkflowFile, 'path'> {
  const inputs: FileInput[] = [];
  const inputsText = JSON.stringify(Object.values(workflow).map((node) => node.inputs));
  const rewrittenNodes = Object.entries(workflow).map(([node, entry]) => {
    const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(
      ([input, value]): [string, Json] => {
        const info = assetReferenceIn(value);
        if (!info) return [input, value];
        const from = sourceOf(info);
        const placeholder = unusedPlaceholder(inputsText, from);
        inputs.push({ node, input, placeholder, from });
        return [input, placeholder];
      },
    );
    return [node, { ...entry, inputs: Object.fromEntries(rewrittenInputs) }];
  });
  const graph = Object.fromEntries(rewrittenNodes) as Json;
  return { text: prettyJson(graph), inputs, hasExactNumbers: hasExactNumbers(graph) };
}

/** `@inputs/cat.png`, with more `@` while the workflow says so itself. */
function unusedPlaceholder(text: string, from: FileInput['from']): string {
  const name =
    from.kind === 'file'
      ? from.file.path
      : `${from.place.job}/${from.place.node.replaceAll(/[^\w-]/g, '_')}/${from.place.index}`;
  let placeholder = `@${name}`;
  while (text.includes(JSON.stringify(placeholder))) placeholder = `@${placeholder}`;
  return placeholder;
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
