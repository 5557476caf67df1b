// The short one: what was accepted survives a few kills. `npm run crash` is the long one.
import { expect, test } from 'vitest';
import { crash } from './run.ts';

const SEED = Number(process.env['HOLDOVER_TEST_SEED'] ?? 16);

test('nothing that was accepted is lost, doubled or stalled by kill -9 of a server or of the one it stands before', async () => {
  const { account } = await crash({ topology: 'remote', seed: SEED, kills: 2 });
  expect(account.troubles).toEqual([]);
  const { lost, doubled, neverTaken, stalled } = account;
  expect({ lost, doubled, neverTaken, stalled }).toEqual({
    lost: 0,
    doubled: 0,
    neverTaken: 0,
    stalled: 0,
  });
  expect(account.prompts).toBeGreaterThan(0);
}, 600_000);
