import { readdir, readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import type { JsonObject } from '../../../src/protocol/json.ts';
import type { Inputs, NodeContext, NodeDef, SavedFile, Value } from '../../../src/nodes/node.ts';

const ROOT = new URL('../../../fixtures/pixels/', import.meta.url);

type Graph = {
  readonly [id: string]: {
    readonly class_type: string;
    readonly inputs: { readonly [name: string]: unknown };
  };
};

/** One recorded graph of the original server, with the files it read and wrote. */
export type PixelCase = {
  readonly case: string;
  readonly classes: readonly string[];
  readonly note: string;
  readonly status: string;
  readonly outputs: readonly string[];
};

/** The files, texts and `ui` of one run of a case, in call order. */
export type CaseRun = {
  readonly saved: readonly { readonly nodeId: string; readonly file: SavedFile }[];
  readonly texts: readonly { readonly nodeId: string; readonly text: string }[];
  readonly ui: { readonly [nodeId: string]: unknown };
};

/** How far one file of ours is from the recorded one, in levels of 255; `shape` is set when sizes differ. */
export type PixelDifference = {
  readonly file: string;
  readonly max: number;
  readonly mean: number;
  readonly shape?: string;
};

/** All recorded cases, in the order they were recorded. */
export const pixelCases = (): readonly PixelCase[] =>
  JSON.parse(readFileSync(new URL('index.json', ROOT), 'utf8')) as PixelCase[];

/** The cases whose every class is among these nodes; with `using`, only those that exercise one of these classes. */
export const casesFor = (
  nodes: readonly NodeDef[],
  using: readonly string[],
): readonly PixelCase[] => {
  const known = new Set(nodes.map((node) => node.name));
  return pixelCases().filter(
    (row) =>
      row.classes.every((name) => known.has(name)) &&
      row.classes.some((name) => using.includes(name)),
  );
};

/** The graph of a case as it was posted. */
export const graphOf = (row: PixelCase): Graph =>
  (readJson(`${row.case}/graph.json`) as { prompt: Graph }).prompt;

/** A context that reads a case's inputs and keeps what is saved and said; enough to run nodes without an engine. */
export const fakeContext = (options: {
  readonly nodeId?: string;
  readonly case?: string;
  readonly onSave?: (file: SavedFile) => void;
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
    options.onSave?.(file);
    return { x_asset: file.name };
  },
  nextCounter: async ({ temp, subfolder }, prefix) => {
    const counters = options.counters ?? new Map<string, number>();
    const key = `${temp}/${subfolder}/${prefix}`;
    const next = (counters.get(key) ?? 0) + 1;
    counters.set(key, next);
    return next;
  },
  promptText: null,
  extraPngInfo: null,
});

/** Runs the graph of a case over these nodes, output nodes in the graph's order, every node once. */
export const runCase = async (row: PixelCase, nodes: readonly NodeDef[]): Promise<CaseRun> => {
  const graph = graphOf(row);
  const table = new Map(nodes.map((node) => [node.name, node]));
  const done = new Map<string, Promise<readonly (Value | readonly Value[])[]>>();
  const counters = new Map<string, number>();
  const run: {
    saved: { nodeId: string; file: SavedFile }[];
    texts: { nodeId: string; text: string }[];
    ui: Record<string, unknown>;
  } = { saved: [], texts: [], ui: {} };

  const evaluate = (id: string): Promise<readonly (Value | readonly Value[])[]> => {
    const known = done.get(id) ?? execute(id);
    done.set(id, known);
    return known;
  };
  const resolve = async (given: unknown): Promise<Value> => {
    if (!Array.isArray(given)) return given as Value;
    const outputs = await evaluate(String(given[0]));
    return outputs[Number(given[1])] as Value;
  };
  const execute = async (id: string): Promise<readonly (Value | readonly Value[])[]> => {
    const node = graph[id];
    const def = node && table.get(node.class_type);
    if (!node || !def) throw new Error(`${row.case}: no node ${id} or no class for it`);
    const inputs: Record<string, Value> = {};
    for (const [name, given] of Object.entries(node.inputs)) inputs[name] = await resolve(given);
    const context = fakeContext({
      nodeId: id,
      case: row.case,
      counters,
      onSave: (file) => run.saved.push({ nodeId: id, file }),
      onText: (text) => run.texts.push({ nodeId: id, text }),
    });
    const result = await def.run(inputs as Inputs, context);
    if (result.ui !== undefined) run.ui[id] = result.ui;
    return result.outputs;
  };

  for (const [id, node] of Object.entries(graph)) {
    if (table.get(node.class_type)?.outputNode) await evaluate(id);
  }
  return run;
};

/** Compares what a run saved with the recorded files, node by node in the recorded order. */
export const compareCase = async (
  row: PixelCase,
  run: CaseRun,
): Promise<readonly PixelDifference[]> => {
  const differences: PixelDifference[] = [];
  for (const [nodeId, names] of recordedFiles(row)) {
    const ours = run.saved.filter((saved) => saved.nodeId === nodeId);
    for (const [index, name] of names.entries()) {
      const bytes = ours[index]?.file.bytes;
      const recorded = await readFile(new URL(`${row.case}/outputs/${name}`, ROOT));
      differences.push(
        bytes
          ? await compareFiles(name, bytes, recorded)
          : { file: name, max: 255, mean: 255, shape: 'missing' },
      );
    }
    if (ours.length > names.length)
      differences.push({
        file: `extra files of node ${nodeId}`,
        max: 255,
        mean: 255,
        shape: 'extra',
      });
  }
  return differences;
};

/** The recorded `outputs` of a case's history entry, by node. */
export const recordedOutputs = (row: PixelCase): { readonly [nodeId: string]: JsonObject } =>
  (readJson(`${row.case}/outputs.json`) as { outputs: { [nodeId: string]: JsonObject } }).outputs;

/** The worst of several differences, for one assertion per case. */
export const worst = (
  differences: readonly PixelDifference[],
): { readonly max: number; readonly mean: number; readonly shapes: readonly string[] } => ({
  max: Math.max(0, ...differences.map((one) => one.max)),
  mean: Math.max(0, ...differences.map((one) => one.mean)),
  shapes: differences.flatMap((one) =>
    one.shape === undefined ? [] : [`${one.file}: ${one.shape}`],
  ),
});

/** Names of all files a case has recorded, sorted. */
export const recordedFileNames = async (row: PixelCase): Promise<readonly string[]> =>
  (await readdir(new URL(`${row.case}/outputs/`, ROOT), { recursive: true })).sort();

const recordedFiles = (row: PixelCase): readonly (readonly [string, readonly string[]])[] =>
  Object.entries(recordedOutputs(row)).map(([nodeId, output]) => {
    const images = (output['images'] ?? []) as unknown as { filename: string; subfolder: string }[];
    return [
      nodeId,
      images.map((image) =>
        image.subfolder ? `${image.subfolder}/${image.filename}` : image.filename,
      ),
    ];
  });

type Decoded = { readonly data: Buffer; readonly size: string };

const decode = async (bytes: Uint8Array): Promise<Decoded> => {
  const { data, info } = await sharp(bytes, { animated: true })
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { data, size: `${info.width}x${info.height}x${info.channels}` };
};

const compareFiles = async (
  file: string,
  ours: Uint8Array,
  recorded: Uint8Array,
): Promise<PixelDifference> => {
  const [mine, theirs] = [await decode(ours), await decode(recorded)];
  if (mine.size !== theirs.size)
    return { file, max: 255, mean: 255, shape: `${mine.size} instead of ${theirs.size}` };
  let [max, sum] = [0, 0];
  for (let i = 0; i < mine.data.length; i++) {
    const difference = Math.abs((mine.data[i] as number) - (theirs.data[i] as number));
    sum += difference;
    if (difference > max) max = difference;
  }
  return { file, max, mean: sum / mine.data.length };
};

const readJson = (path: string): unknown => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8'));
