import { describe, expect, test } from 'vitest';
import { readPngChunks } from '../../src/nodes/codecs/png-chunks.ts';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { Cancelled, type NodeContext, type NodeDef, OutOfMemory } from '../../src/nodes/node.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { findOutputs, validateOutputs } from '../../src/engine/validation/validate-workflow.ts';
import {
  difference,
  pixelCases,
  recordedFile,
  recordedJson,
  runGraph,
} from '../support/graphs/pixels.ts';

/** Levels of 255 that every pixel may be off. */
const LEVELS = 2;

/** Two decoders of JPEG, and two builds of a lossy encoder (row `pixels` of docs/differences.md). */
const LOSSY: { readonly [name: string]: number } = {
  load_plain_jpg: 50,
  load_exif6_jpg: 76,
  animwebp_lossy: 64,
};
const LOSSY_MEAN = 6;

/** An engine runs identical nodes once. */
const RUNS_TWICE = 'prefix_counter';

const nodes = [...ALL_NODES.values()];
const RAN = pixelCases().filter(({ status }) => status === 'success');
const REFUSED = pixelCases().filter(({ status }) => status === 'refused 400');
const CASES = RAN.map((row) => row.case).filter((name) => name !== RUNS_TWICE);

type Recorded = {
  readonly [file: string]: {
    readonly text?: readonly {
      readonly chunk: string;
      readonly keyword: string;
      readonly text: string;
    }[];
    readonly chunks?: readonly string[];
  };
};

test('the library has every class that was recorded', () => {
  const recorded = new Set(pixelCases().flatMap(({ classes }) => classes));
  expect([...recorded].filter((name) => !ALL_NODES.has(name))).toEqual([]);
});

test.each(CASES)('%s: names, pixels and metadata are those of the original', async (name) => {
  const run = await runGraph(name, nodes);
  const { outputs } = recordedJson(name, 'outputs.json') as { outputs: object };
  expect(withoutRandom(run.ui)).toEqual(outputs);
  for (const { bytes, filename, subfolder } of run.saved) {
    const file = withoutRandom(subfolder === '' ? filename : `${subfolder}/${filename}`);
    const { max, mean } = await difference(bytes, recordedFile(name, 'outputs', file));
    expect(max).toBeLessThanOrEqual(LOSSY[name] ?? LEVELS);
    expect(mean).toBeLessThanOrEqual(name in LOSSY ? LOSSY_MEAN : LEVELS);
    expectMetadata(bytes, (recordedJson(name, 'text_chunks.json') as Recorded)[file]!);
  }
});

/** Nodes may be in another order: JavaScript sorts the ids of a graph. */
function expectMetadata(bytes: Uint8Array, recorded: Recorded[string]): void {
  const { text, chunks } = recorded;
  // The Exif texts of a WEBP are in save.test.ts.
  if (!chunks) return;
  expect(textsOf(bytes)).toEqual(
    text?.map(({ chunk, ...each }) => [chunk, each.keyword, JSON.parse(each.text)]),
  );
  expect(chunkOrder(bytes)).toEqual(chunks);
}

test.each(REFUSED.map((row) => row.case))('%s is refused as by the original', (name) => {
  const { prompt } = recordedJson(name, 'graph.json') as unknown as { prompt: Graph };
  const found = findOutputs(prompt, ALL_NODES);
  const options = { nodes: ALL_NODES, unknownFiles: new Map() };
  const result = found.ok ? runSteps(validateOutputs(prompt, found.value, options)) : found;
  if (result.ok) throw new Error('it was accepted');
  const { error, x_native: nodeErrors } = result.error.details as JsonObject;
  const { answer } = recordedJson(name, 'outputs.json') as JsonObject;
  expect({ error, node_errors: nodeErrors }).toEqual(answer);
});

/** The classes that make pictures or masks, with a recorded graph for each. */
const MAKERS = nodes.flatMap(({ name, outputs, outputNode }: NodeDef) => {
  const row = RAN.find(({ classes }) => classes.includes(name));
  const isMaker = outputs.some(({ type }) => type === 'IMAGE' || type === 'MASK');
  return row && isMaker && !outputNode ? [[name, row.case] as const] : [];
});

describe.each(MAKERS)('%s', (name, recorded) => {
  const runWith = (change: Partial<NodeContext>) =>
    runGraph(recorded, nodes, (className) => (className === name ? change : {}));

  test('reserves memory, and stops when the job is cancelled', async () => {
    const reserve = (): never => {
      throw new OutOfMemory();
    };
    await expect(runWith({ reserve })).rejects.toThrow(OutOfMemory);
    const check = (): never => {
      throw new Cancelled();
    };
    // An engine checks at each reservation.
    await expect(runWith({ check, reserve: check })).rejects.toThrow(Cancelled);
  });
});

/** Previews have random names; the recording replaces the letters by abcda. */
function withoutRandom<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll(/_temp_[a-z]{5}_/g, '_temp_abcda_')) as T;
}

function textsOf(bytes: Uint8Array): readonly (readonly unknown[])[] {
  const texts = readPngChunks(bytes).filter(({ type }) => type === 'tEXt' || type === 'comf');
  return texts.map(({ type, data }) => {
    const [keyword, text = ''] = Buffer.from(data).toString('latin1').split('\0');
    return [type, keyword, JSON.parse(text)];
  });
}

/** Runs of one type count as one. */
function chunkOrder(bytes: Uint8Array): readonly string[] {
  const types = readPngChunks(bytes).map(({ type }) => type);
  return types.filter((type, i) => type !== types[i - 1]);
}
