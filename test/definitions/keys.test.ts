import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/protocol/job-api.ts';
import { SECOND, eventually, open, origin, outline } from './open.ts';
import { type Hook, classes, honest, keyOf, reset, status } from './origin.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const LOCAL: Caller = { user: 'local' };
const ANNA: Caller = { user: 'anna', credential: 'key-of-anna' };
const BEN: Caller = { user: 'ben', credential: 'key-of-ben' };

/** Each key has nodes of its own; without one there is nothing. */
const keyed: Hook = (req, res) => {
  const key = keyOf(req);
  if (key === undefined) return status(401)(req, res);
  return honest(classes(`Of-${key}`))(req, res);
};

function keysSeen(journal: Parameters<typeof keyOf>[0][]): (string | undefined)[] {
  return journal.map(keyOf);
}

describe('a key', () => {
  test('is not sent where definitions can be had without', async () => {
    const there = await origin(honest(classes('Open')));
    const definitions = await open({ upstreamUrl: there.url });
    for (const caller of [ANNA, BEN, LOCAL]) {
      expect(outline(await definitions.current(caller))).toBe('Open');
    }
    expect(keysSeen(there.journal)).toEqual([undefined]);
  });

  test('of a caller is needed again after a restart: its definitions are not on disk', async () => {
    const copiesDir = await tempFolder('definitions');
    const there = await origin(keyed);
    const before = await open({ upstreamUrl: there.url, copiesDir });
    await before.current(ANNA);
    there.answer = reset;
    before.clock.now += 61 * SECOND;
    await eventually(async () => outline(await before.current(ANNA)), 'Of-key-of-anna stale');
    await before.close();
    expect(await readdir(copiesDir)).toEqual([]);
    const restarted = await open({ upstreamUrl: there.url, copiesDir });
    for (const caller of [ANNA, BEN, LOCAL]) {
      expect(outline(await restarted.current(caller))).toMatch(/^nothing/);
    }
  });

  test('that is refused gets what a call without a key gets, never another user’s', async () => {
    const there = await origin((req, res) =>
      (keyOf(req) === ANNA.credential ? keyed : status(403))(req, res),
    );
    const definitions = await open({ upstreamUrl: there.url });
    expect(outline(await definitions.current(ANNA))).toBe('Of-key-of-anna');
    expect(outline(await definitions.current(BEN))).toBe('Embedded stand-in');
  });

  test('that is fixed serves all callers, after asking without', async () => {
    const there = await origin(keyed);
    const definitions = await open({ upstreamUrl: there.url, key: 'ours' });
    for (const caller of [ANNA, LOCAL]) {
      expect(outline(await definitions.current(caller))).toBe('Of-ours');
    }
    expect(keysSeen(there.journal).filter(Boolean)).toEqual(['ours']);
  });

  test('that is not fixed any more leaves nothing to callers without it', async () => {
    const copiesDir = await tempFolder('definitions');
    const there = await origin(keyed);
    const before = await open({ upstreamUrl: there.url, key: 'ours', copiesDir });
    await before.current(LOCAL);
    await before.close();
    there.answer = reset;
    const again = await open({ upstreamUrl: there.url, key: 'ours', copiesDir });
    expect(outline(await again.current(LOCAL))).toBe('Of-ours stale');
    const without = await open({ upstreamUrl: there.url, copiesDir });
    expect(outline(await without.current(LOCAL))).toMatch(/^nothing/);
  });

  test.each<[string, string | undefined]>([
    ['of a caller', undefined],
    ['that is fixed', 'ours'],
  ])('%s does not go to a URL on another origin', async (_, key) => {
    const upstream = await origin(status(404));
    const elsewhere = await origin(keyed);
    const source = { kind: 'url', url: `${elsewhere.url}/nodes.json` } as const;
    const definitions = await open({ source, upstreamUrl: upstream.url, ...(key && { key }) });
    expect(outline(await definitions.current(ANNA))).toMatch(/^nothing/);
    expect(elsewhere.lines()).toEqual(['GET /nodes.json']);
    expect(keysSeen(elsewhere.journal)).toEqual([undefined]);
    expect(upstream.journal).toEqual([]);
  });

  test('goes to a URL on the upstream’s own origin', async () => {
    const there = await origin(keyed);
    const source = { kind: 'url', url: `${there.url}/nodes.json?a=b` } as const;
    const definitions = await open({ source, upstreamUrl: `${there.url}/mount` });
    expect(outline(await definitions.current(ANNA))).toBe('Of-key-of-anna');
    expect(new Set(there.lines())).toEqual(new Set(['GET /nodes.json?a=b']));
  });

  test('is not carried along by a redirect', async () => {
    const elsewhere = await origin(honest(classes('Elsewhere')));
    const there = await origin((req, res) =>
      (keyOf(req) ? status(302, { location: `${elsewhere.url}/` }) : status(401))(req, res),
    );
    const definitions = await open({ upstreamUrl: there.url });
    expect(outline(await definitions.current(ANNA))).toBe('Embedded stand-in');
    expect(elsewhere.journal).toEqual([]);
  });
});

test('definitions that get locked are fetched for each caller from then on', async () => {
  const there = await origin(honest(classes('Open')));
  const definitions = await open({ upstreamUrl: there.url });
  expect(outline(await definitions.current(ANNA))).toBe('Open');
  there.answer = keyed;
  definitions.clock.now += 6 * SECOND;
  expect(outline(await definitions.refreshed(ANNA))).toBe('Of-key-of-anna');
  expect(outline(await definitions.current(BEN))).toBe('Of-key-of-ben');
});
