import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SECOND, eventually, open, origin, outline } from './open.ts';
import { classes, honest, reset } from './origin.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const LOCAL = { user: 'local' };

test.each<[string, (path: string) => Promise<void>]>([
  ['went away', (path) => rm(path)],
  ['is broken', (path) => writeFile(path, '{"One":{"input":')],
  ['is too large', (path) => writeFile(path, JSON.stringify(classes('Two')) + ' '.repeat(20_000))],
])('a file that %s leaves the last definitions, marked', async (_, spoil) => {
  const path = join(await tempFolder('definitions'), 'nodes.json');
  await writeFile(path, JSON.stringify(classes('One')));
  const definitions = await open({ source: { kind: 'file', path }, limits: { maxBytes: 10_000 } });
  await definitions.current(LOCAL);
  await spoil(path);
  expect(outline(await definitions.current(LOCAL))).toBe('One stale');
  await writeFile(path, JSON.stringify(classes('Two')));
  definitions.clock.now += 5 * SECOND;
  expect(outline(await definitions.current(LOCAL))).toBe('Two');
});

test('a URL that has none is no stand-in’s business', async () => {
  const there = await origin(honest({}));
  const source = { kind: 'url', url: `${there.url}/nodes.json` } as const;
  const definitions = await open({ source });
  expect(outline(await definitions.current(LOCAL))).toMatch(/^nothing/);
  expect(Object.keys(await definitions.info(LOCAL))).toEqual(['Embedded']);
  there.answer = honest(classes('There'));
  definitions.clock.now += 60 * SECOND;
  expect(outline(await definitions.current(LOCAL))).toBe('There');
  there.answer = reset;
  definitions.clock.now += 60 * SECOND;
  await eventually(async () => outline(await definitions.current(LOCAL)), 'There stale');
});
