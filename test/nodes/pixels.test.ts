import { describe, expect, test } from 'vitest';
import { readPngChunks } from '../../src/nodes/codecs/png-chunks.ts';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { Cancelled, type NodeContext, type NodeDef, OutOfMemory } from '../../src/nodes/node.ts';
import {
  difference,
  pixelCases,
  recordedFile,
  recordedJson,
  runGraph,
} from '../support/graphs/pixels.ts';

/** Levels of 255 that every pixel may be off. */
const LEVELS = 2;

/** Two builds of a lossy encoder lose different details. */
const LOSSY = { name: 'animwebp_lossy', levels: 64, mean: 6 };

/** The original makes every 16-bit grey pixel white (load.test.ts, docs/differences.md). */
const GREY_16 = 'load_gray16_png';

/** An engine runs identical nodes once. */
const RUNS_TWICE = 'prefix_counter';

const nodes = [...ALL_NODES.values()];
const CASES = pixelCases()
  .map((row) => row.case)
  .filter((name) => name !== RUNS_TWICE);

type Recorded = {
  readonly [file: string]: {
    readonly text?: readonly {
      readonly chunk: string;
      readonly keyword: string;
      readonly text: string;
    }[];
    readonly chunk_order?: readonly string[];
    readonly exif?: { readonly [tag: string]: string };
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
  const isLossy = name === LOSSY.name;
  for (const { bytes, name: fileName, subfolder } of run.saved) {
    const file = withoutRandom(subfolder === '' ? fileName : `${subfolder}/${fileName}`);
    const { max, mean } = await difference(bytes, recordedFile(name, 'outputs', file));
    if (name === GREY_16) continue;
    expect(max).toBeLessThanOrEqual(isLossy ? LOSSY.levels : LEVELS);
    expect(mean).toBeLessThanOrEqual(isLossy ? LOSSY.mean : LEVELS);
    expectMetadata(bytes, (recordedJson(name, 'text_chunks.json') as Recorded)[file]!);
  }
});

/** Nodes may be in another order: JavaScript sorts the ids of a graph. */
function expectMetadata(bytes: Uint8Array, recorded: Recorded[string]): void {
  const { text, chunk_order: order, exif } = recorded;
  if (order) {
    expect(textsOf(bytes)).toEqual(
      text?.map(({ chunk, ...each }) => [chunk, each.keyword, JSON.parse(each.text)]),
    );
    expect(chunkOrder(bytes)).toEqual(order);
  }
  const prompt = exif?.['0x110'];
  if (prompt) expect(Buffer.from(bytes).toString('latin1')).toContain(`${wholeNumbers(prompt)}\0`);
}

/** The classes that make pictures or masks, with a recorded graph for each. */
const MAKERS = nodes.flatMap(({ name, outputs }: NodeDef) => {
  const row = pixelCases().find(({ classes }) => classes.includes(name));
  const isMaker = outputs.some(({ type }) => type === 'IMAGE' || type === 'MASK');
  return row && isMaker ? [[name, row.case] as const] : [];
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

/** We read 6.0 as 6. */
function wholeNumbers(text: string): string {
  return text.replaceAll(/(\d)\.0(?=[,}\]])/g, '$1');
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
