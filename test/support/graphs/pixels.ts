import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import type { Inputs, NodeContext, NodeDef, SavedFile, Value } from '../../../src/nodes/node.ts';
import { type Json, type JsonObject, isJsonObject, parseJson } from '../../../src/protocol/json.ts';
import { pythonJson } from '../../../src/protocol/python-json.ts';

const ROOT = new URL('../../../fixtures/pixels/', import.meta.url);

type Graph = {
  readonly [id: string]: { readonly class_type: string; readonly inputs: JsonObject };
};

type Outputs = readonly (Value | readonly Value[])[];

/** A saved file with the name that it gets. */
type NamedFile = SavedFile & { readonly filename: string };

/** The files that a recorded graph saves and the `ui` that it shows when our nodes run it. */
export type GraphRun = {
  readonly saved: readonly NamedFile[];
  readonly ui: { readonly [nodeId: string]: JsonObject };
};

/** All recorded graphs of the original server, and the classes of each. */
export const pixelCases = (): readonly {
  readonly case: string;
  readonly classes: readonly string[];
  readonly status: string;
}[] => JSON.parse(readFileSync(new URL('index.json', ROOT), 'utf8'));

/** One JSON file of a recorded case. */
export const recordedJson = (name: string, file: string): Json =>
  parseJson(recordedFile(name, file).toString());

/** One file of a recorded case. */
export const recordedFile = (name: string, ...path: readonly string[]): Buffer =>
  readFileSync(new URL([name, ...path].join('/'), ROOT));

/** A context that reads a case's inputs and keeps what is saved and said; enough to run nodes without an engine. */
export const fakeContext = (options: {
  readonly nodeId?: string;
  readonly case?: string;
  readonly onSave?: (file: NamedFile) => void;
  readonly onText?: (text: string) => void;
  readonly counters?: Map<string, number>;
}): NodeContext => ({
  nodeId: options.nodeId ?? '1',
  check: () => {},
  progress: () => {},
  preview: () => {},
  text: (text) => options.onText?.(text),
  reserve: () => {},
  reserveShown: (chars) => chars,
  readFile: (value) =>
    readFile(new URL(`${options.case}/inputs/${value.replace(/ \[\w+\]$/, '')}`, ROOT)),
  save: async (file) => {
    const { temp, subfolder, name } = file;
    const counters = options.counters ?? new Map<string, number>();
    const key = `${temp}/${subfolder}/${name.series}`;
    const counter = (counters.get(key) ?? 0) + 1;
    counters.set(key, counter);
    const filename = `${name.start}${String(counter).padStart(5, '0')}${name.end}`;
    options.onSave?.({ ...file, filename });
    return { filename, subfolder, type: temp ? 'temp' : 'output' };
  },
  promptText: null,
  extraPngInfo: null,
});

/**
 * Runs a recorded case with the prompt, the extra data and the output types that an engine would hand to its nodes.
 * `contextFor` may change the context of the nodes of a class.
 */
export async function runGraph(
  name: string,
  nodes: readonly NodeDef[],
  contextFor: (className: string) => Partial<NodeContext> = () => ({}),
): Promise<GraphRun> {
  const posted = recordedJson(name, 'graph.json') as {
    prompt: Json;
    extra_data?: { extra_pnginfo?: JsonObject };
  };
  const graph = posted.prompt as unknown as Graph;
  const table = new Map(nodes.map((def) => [def.name, def]));
  const done = new Map<string, Promise<Outputs>>();
  const counters = new Map<string, number>();
  const saved: NamedFile[] = [];
  const ui: Record<string, JsonObject> = {};

  const run = async (id: string): Promise<Outputs> => {
    const { class_type, inputs } = graph[id]!;
    const values: Record<string, Value> = {};
    const inputTypes: Record<string, string> = {};
    for (const [input, given] of Object.entries(inputs)) {
      const [from, slot] = Array.isArray(given) ? [String(given[0]), Number(given[1])] : [];
      values[input] = from === undefined ? (given as Value) : await valueOf(from, slot!);
      if (from !== undefined)
        inputTypes[input] = table.get(graph[from]!.class_type)!.outputs[slot!]!.type;
    }
    const context: NodeContext = {
      ...fakeContext({ nodeId: id, case: name, counters, onSave: (file) => saved.push(file) }),
      inputTypes,
      promptText: pythonJson(stamped(name, graph)),
      extraPngInfo: posted.extra_data?.extra_pnginfo ?? null,
      ...contextFor(class_type),
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
  const valueOf = async (id: string, slot: number): Promise<Value> =>
    (await evaluate(id))[slot] as Value;
  for (const [id, { class_type }] of Object.entries(graph))
    if (table.get(class_type)!.outputNode) await evaluate(id);
  return { saved, ui };
}

/** v1 writes into the prompt which bytes each loading node read. */
function stamped(name: string, graph: Graph): JsonObject {
  const entries = Object.entries(graph).map(([id, node]) => {
    const { image } = node.inputs;
    if (typeof image !== 'string' || !isJsonObject(node)) return [id, node];
    const bytes = recordedFile(name, 'inputs', image.replace(/ \[\w+\]$/, ''));
    return [id, { ...node, is_changed: [createHash('sha256').update(bytes).digest('hex')] }];
  });
  return Object.fromEntries(entries) as JsonObject;
}

/** How far two pictures are apart, in levels of 255. Pictures of different sizes fail. */
export async function difference(
  ours: Uint8Array,
  recorded: Uint8Array,
): Promise<{ readonly max: number; readonly mean: number }> {
  const [mine, theirs] = [await decode(ours), await decode(recorded)];
  if (mine.size !== theirs.size) throw new Error(`${mine.size} instead of ${theirs.size}`);
  let [max, sum] = [0, 0];
  for (let i = 0; i < mine.data.length; i++) {
    const levels = Math.abs((mine.data[i] as number) - (theirs.data[i] as number));
    sum += levels;
    max = Math.max(max, levels);
  }
  return { max, mean: sum / mine.data.length };
}

async function decode(bytes: Uint8Array): Promise<{ data: Buffer; size: string }> {
  const { data, info } = await sharp(bytes, { animated: true })
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { data, size: `${info.width}x${info.height}x${info.channels}` };
}
