import { expect, test } from 'vitest';
import { createSharedFigures } from '../../src/console/shared-figures.ts';
import type { FigureSample } from '../../src/console/api-types.ts';

/** The commands that servers use, over one hash. */
function fakeLinks() {
  const hash: Record<string, string> = {};
  const steps = {
    hset: (_key: string, field: string, value: string) => ((hash[field] = value), steps),
    pexpire: () => steps,
    hgetall: () => steps,
    exec: async () => [[null, { ...hash }]],
  };
  const hdel = async (_key: string, ...fields: string[]) => fields.forEach((f) => delete hash[f]);
  const commands = { status: 'ready', multi: () => steps, hdel };
  return { hash, links: { commands, prefix: 'holdover:' } as never };
}

const sampleAt = (atMs: number, queued = 0) => ({ at_ms: atMs, queued }) as FigureSample;

test('each server knows the measurements of the others, whatever their clocks say', async () => {
  const { links } = fakeLinks();
  const [first, second] = ['first', 'second'].map((server) =>
    createSharedFigures({ links, server, version: '1' }),
  );
  for (let at = 0; at < 400; at++) {
    await second?.exchange(sampleAt(at * 10_000 - 3_600_000, at));
    await first?.exchange(sampleAt(at * 10_000, -at));
  }
  const [other, ...more] = first?.others() ?? [];
  expect(more).toEqual([]);
  expect(other).toMatchObject({ server: 'second', version: '1' });
  expect(other?.samples).toHaveLength(360);
  expect(other?.samples.at(-1)?.queued).toBe(399);
  expect(second?.others().map(({ server }) => server)).toEqual(['first']);
});

test('a server that is gone is forgotten', async () => {
  const { hash, links } = fakeLinks();
  const there = createSharedFigures({ links, server: 'there', version: '1' });
  await createSharedFigures({ links, server: 'gone', version: '1' }).exchange(sampleAt(0));
  for (const atMs of [0, 10_000, 20_000, 30_000]) await there.exchange(sampleAt(atMs));
  expect(there.others()).toHaveLength(1);
  await there.exchange(sampleAt(40_000));
  expect([there.others(), Object.keys(hash)]).toEqual([[], ['there']]);
});

test('without a Redis a server is alone', async () => {
  const alone = createSharedFigures({ links: undefined, server: 'alone', version: '1' });
  await alone.exchange(sampleAt(0));
  expect(alone.others()).toEqual([]);
});
