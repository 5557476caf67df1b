import { expect, test } from 'vitest';
import { LosslessNumber } from '../../../src/protocol/json.ts';
import type { Value } from '../../../src/nodes/node.ts';
import { describeInputs } from '../../../src/engine/execution/node-values.ts';

test('the values of an error keep the digits of their numbers, also of nested ones', () => {
  const seed = new LosslessNumber('18446744073709551615');
  const nested = { seeds: [seed, 1.5] } as unknown as Value;
  expect(describeInputs({ seed: 2n ** 64n - 1n, nested })).toEqual({
    seed: [seed],
    nested: ['{"seeds":[18446744073709551615,1.5]}'],
  });
});
