// A node runs once for each item of a list; what its calls return counts once.
import { expect, test } from 'vitest';
import type { NodeDef } from '../../../src/nodes/node.ts';
import type { StoredOutput } from '../../../src/engine/jobs/worker-protocol.ts';
import { type Execution, execute } from '../../../src/engine/execution/execute-plan.ts';
import { createMemoryMeter } from '../../../src/engine/execution/memory-meter.ts';
import type { NodeRecord } from '../../../src/engine/execution/node-cache.ts';
import type { PlannedNode } from '../../../src/engine/execution/run-plan.ts';

const ITEMS = 300;
const TEXT_CHARS = 10_000;

const NUMBERS = {
  name: 'Numbers',
  outputs: [{ type: 'INT', isList: true }],
  run: () => ({ outputs: [Array.from({ length: ITEMS }, (_, i) => i)] }),
} as unknown as NodeDef;

/** Gives texts of one length. */
const TEXTS = {
  name: 'Texts',
  outputs: [{ type: 'STRING' }],
  run: ({ value }: { readonly value: number }) => {
    const text = String(value).padStart(TEXT_CHARS, '0');
    return { outputs: [text], ui: { text: [text.slice(-3)] } };
  },
} as unknown as NodeDef;

test('texts of a long list are counted once each, and shown in their order', async () => {
  const nodeOf = (id: string, def: NodeDef, links: PlannedNode['links']): PlannedNode => ({
    id,
    def,
    links,
    lazyLinks: new Map(),
    literals: new Map(),
    signature: id,
  });
  const meter = createMemoryMeter(ITEMS * TEXT_CHARS * 3);
  const records = new Map<string, NodeRecord>();
  await execute({
    plan: new Map([
      ['1', nodeOf('1', NUMBERS, new Map())],
      ['2', nodeOf('2', TEXTS, new Map([['value', { from: '1', slot: 0 }]]))],
    ]),
    targets: new Set(['2']),
    records,
    meter,
    post() {},
    begin: async () => null,
    handled: async () => null,
    contextFor: () => ({ meter, saved: [] as StoredOutput[], check() {}, flush() {} }),
  } as unknown as Execution);
  const { slots, uiJson } = records.get('2') ?? {};
  expect(slots?.[0]).toHaveLength(ITEMS);
  expect(JSON.parse(uiJson ?? '').text.slice(0, 3)).toEqual(['000', '001', '002']);
  expect(() => meter.reserve(ITEMS * TEXT_CHARS)).not.toThrow();
});
