import { expect, test } from 'vitest';
import { ALL_NODES } from '../../../src/nodes/library.ts';
import type { NodeDef } from '../../../src/nodes/node.ts';
import { warmUp } from '../../../src/upstreams/execution/warm-up.ts';

test('the prompt that warms a thread up makes and saves a picture', async () => {
  const ended: string[] = [];
  const watched = (def: NodeDef): NodeDef => ({
    ...def,
    async run(inputs, context) {
      const result = await def.run(inputs, context);
      ended.push(def.name);
      return result;
    },
  });
  await warmUp(new Map([...ALL_NODES].map(([name, def]) => [name, watched(def)])));
  expect(ended.slice(0, 2)).toEqual(['EmptyImage', 'PreviewImage']);
});

test('a library without these nodes is no error', async () => {
  await expect(warmUp(new Map())).resolves.toBeUndefined();
});
