import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Inputs, NodeContext, NodeDef, SavedFile, Value } from '../../../src/nodes/node.ts';
import { isJsonObject, parseJson, type Json, type JsonObject } from '../../../src/protocol/json.ts';
import { pythonJson } from '../../../src/protocol/python-json.ts';
import { fakeContext } from './pixels.ts';

const ROOT = new URL('../../../fixtures/pixels/', import.meta.url);

type GraphNode = { readonly class_type: string; readonly inputs: JsonObject };
type Outputs = readonly (Value | readonly Value[])[];

/** The files a recorded graph saves and the `ui` it shows when our nodes run it. */
export type GraphRun = {
  readonly saved: readonly SavedFile[];
  readonly ui: { readonly [nodeId: string]: JsonObject };
};

/** One JSON file of a recorded case. */
export function recordedJson(name: string, file: string): Json {
  return parseJson(readFileSync(new URL(`${name}/${file}`, ROOT), 'utf8'));
}

/** One file of a recorded case. */
export function recordedFile(name: string, ...path: readonly string[]): Buffer {
  return readFileSync(new URL([name, ...path].join('/'), ROOT));
}

/** Runs a recorded case with the prompt, the extra data and the output types an engine would hand to its nodes. */
export async function runGraph(name: string, nodes: readonly NodeDef[]): Promise<GraphRun> {
  const posted = recordedJson(name, 'graph.json') as {
    prompt: Json;
    extra_data?: { extra_pnginfo?: JsonObject };
  };
  const graph = posted.prompt as unknown as { readonly [id: string]: GraphNode };
  const table = new Map(nodes.map((def) => [def.name, def]));
  const done = new Map<string, Promise<Outputs>>();
  const counters = new Map<string, number>();
  const saved: SavedFile[] = [];
  const ui: Record<string, JsonObject> = {};

  const run = async (id: string): Promise<Outputs> => {
    const { class_type, inputs } = graph[id]!;
    const values: Record<string, Value> = {};
    const inputTypes: Record<string, string> = {};
    for (const [input, given] of Object.entries(inputs)) {
      const link = linkOf(given);
      values[input] = link ? ((await evaluate(link.id))[link.slot] as Value) : (given as Value);
      if (link) inputTypes[input] = table.get(graph[link.id]!.class_type)!.outputs[link.slot]!.type;
    }
    const context: NodeContext = {
      ...fakeContext({ nodeId: id, case: name, counters }),
      inputTypes,
      promptText: pythonJson(stamped(name, graph)),
      extraPngInfo: posted.extra_data?.extra_pnginfo ?? null,
      save: async (file) => {
        saved.push(file);
        return {
          filename: file.name,
          subfolder: file.subfolder,
          type: file.temp ? 'temp' : 'output',
        };
      },
    };
    const result = await table.get(class_type)!.run(values as Inputs, context);
    if (result.ui) ui[id] = result.ui;
    return result.outputs;
  };
  const evaluate = (id: string): Promise<Outputs> => {
    const known = done.get(id) ?? run(id);
    done.set(id, known);
    return known;
  };
  for (const id of Object.keys(graph)) await evaluate(id);
  return { saved, ui };
}

function linkOf(given: Json): { id: string; slot: number } | undefined {
  return Array.isArray(given) ? { id: String(given[0]), slot: Number(given[1]) } : undefined;
}

/** v1 writes into the prompt which bytes each loading node read. */
function stamped(name: string, graph: { readonly [id: string]: GraphNode }): JsonObject {
  const entries = Object.entries(graph).map(([id, node]) => {
    const { image } = node.inputs;
    if (typeof image !== 'string' || !isJsonObject(node)) return [id, node];
    const bytes = recordedFile(name, 'inputs', image.replace(/ \[\w+\]$/, ''));
    return [id, { ...node, is_changed: [createHash('sha256').update(bytes).digest('hex')] }];
  });
  return Object.fromEntries(entries) as JsonObject;
}
