import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/protocol/job-api.ts';
import { HOUR, SECOND, eventually, open, origin, outline } from './open.ts';
import { type Hook, classes, honest, nodeClass, reset, status } from './origin.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const LOCAL: Caller = { user: 'local' };

const PAGE: Hook = (_req, res) =>
  res.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>a front end</html>');

function at(path: string, hook: Hook, otherwise: Hook = status(404)): Hook {
  return (req, res) => (req.url === path ? hook : otherwise)(req, res);
}

const theirs = honest(classes('Theirs'));

describe('auto asks the upstream’s own host', () => {
  test.each<[string, string, Hook, string, string[]]>([
    ['at /api/object_info', '', at('/api/object_info', theirs), 'Theirs', ['/api/object_info']],
    [
      'then at /object_info',
      '',
      at('/object_info', theirs),
      'Theirs',
      ['/api/object_info', '/object_info'],
    ],
    [
      'past a front end’s page',
      '',
      at('/object_info', theirs, PAGE),
      'Theirs',
      ['/api/object_info', '/object_info'],
    ],
    [
      'below the mount first',
      '/mount/api/v2/',
      at('/mount/object_info', theirs),
      'Theirs',
      ['/mount/api/object_info', '/mount/object_info'],
    ],
    [
      'then above it',
      '/mount',
      at('/api/object_info', theirs),
      'Theirs',
      ['/mount/api/object_info', '/mount/object_info', '/api/object_info'],
    ],
  ])('%s', async (_, path, answer, wanted, lines) => {
    const there = await origin(answer);
    const definitions = await open({ upstreamUrl: there.url + path });
    expect(outline(await definitions.current(LOCAL))).toBe(wanted);
    expect(there.lines()).toEqual(lines.map((line) => `GET ${line}`));
  });

  test.each<[string, Hook]>([
    ['has no such route', status(404)],
    ['fails at it', status(500)],
    ['shows a page', PAGE],
    ['redirects to a login page', status(302, { location: '/login' })],
    ['wants a key there is not', status(401)],
    ['answers JSON that describes no node', honest({ error: { code: 'x' } })],
    ['answers half of it', (_req, res) => res.writeHead(200).end('{"A":{"input":{}')],
  ])('and where that %s the embedded library stands in, marked', async (_, answer) => {
    const there = await origin(answer);
    const definitions = await open({ upstreamUrl: there.url });
    expect(outline(await definitions.current(LOCAL))).toBe('Embedded stand-in');
    expect(Object.keys(await definitions.info(LOCAL))).toEqual(['Embedded']);
  });

  test('and not at all where the embedded library is asked for', async () => {
    const there = await origin(theirs);
    const definitions = await open({ upstreamUrl: there.url, source: { kind: 'embedded' } });
    definitions.start();
    expect(outline(await definitions.current(LOCAL))).toBe('Embedded stand-in');
    expect(there.journal).toEqual([]);
  });
});

describe('a source is asked', () => {
  test('once however many wait, before anybody waits if possible', async () => {
    const there = await origin(at('/api/object_info', theirs));
    const definitions = await open({ upstreamUrl: there.url });
    definitions.start();
    const all = await Promise.all(Array.from({ length: 20 }, () => definitions.current(LOCAL)));
    expect(new Set(all.map(outline))).toEqual(new Set(['Theirs']));
    expect(there.journal.length).toBe(1);
  });

  test('again in the background when its answer is old, with what it said of the last one', async () => {
    let body = classes('Old');
    const there = await origin(honest(() => body));
    const definitions = await open({ upstreamUrl: there.url });
    const first = await definitions.current(LOCAL);
    await definitions.current(LOCAL);
    expect(there.journal.length).toBe(1);
    definitions.clock.now += 61 * SECOND;
    const second = await definitions.current(LOCAL);
    await eventually(() => there.journal.length, 2);
    expect(there.journal[1]?.headers['if-none-match']).toEqual(expect.any(String));
    expect(first).toEqual(second);
    expect(second.ok && first.ok && second.definitions === first.definitions).toBe(true);
    body = classes('Old', 'New');
    definitions.clock.now += 61 * SECOND;
    expect(outline(await definitions.current(LOCAL))).toBe('Old');
    await eventually(async () => {
      // The answer before may have come only now, and counts from now.
      definitions.clock.now += 61 * SECOND;
      return outline(await definitions.current(LOCAL));
    }, 'Old+New');
  });

  test('on demand, at most every five seconds', async () => {
    let body = classes('Old');
    const there = await origin(honest(() => body));
    const definitions = await open({ upstreamUrl: there.url });
    await definitions.current(LOCAL);
    body = classes('New');
    expect(outline(await definitions.refreshed(LOCAL))).toBe('Old');
    definitions.clock.now += 5 * SECOND;
    expect(outline(await definitions.refreshed(LOCAL))).toBe('New');
    await Promise.all(Array.from({ length: 10 }, () => definitions.refreshed(LOCAL)));
    expect(there.journal.length).toBe(2);
  });

  test('for gzip, and its answer unpacked', async () => {
    const there = await origin((req, res) => {
      res.writeHead(200, { 'Content-Encoding': String(req.headers['accept-encoding']) });
      res.end(gzipSync(JSON.stringify(classes('Packed'))));
    });
    const definitions = await open({ upstreamUrl: there.url });
    expect(outline(await definitions.current(LOCAL))).toBe('Packed');
  });

  const bomb = gzipSync(Buffer.alloc(1_000_000, ' '));
  test.each<[string, Hook]>([
    ['larger than allowed', honest({ Big: nodeClass({ description: 'x'.repeat(50_000) }) })],
    [
      'larger than allowed once unpacked',
      (_req, res) => res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb),
    ],
    ['dripping', (_req, res) => void setInterval(() => res.write(' '), 20).unref()],
    ['silent', () => {}],
    ['cut short', (_req, res) => res.writeHead(200, { 'Content-Length': 99 }).end('{')],
  ])('and an answer that is %s changes nothing', async (_, answer) => {
    const there = await origin(theirs);
    const limits = { maxBytes: 20_000, timeoutMs: 700 };
    const definitions = await open({ upstreamUrl: there.url, limits });
    await definitions.current(LOCAL);
    there.answer = answer;
    definitions.clock.now += 6 * SECOND;
    expect(outline(await definitions.refreshed(LOCAL))).toBe('Theirs stale');
    expect(Object.keys(await definitions.info(LOCAL))).toEqual(['Theirs']);
  });
});

describe('while a source is down', () => {
  test('the last answer is served as stale, with one attempt in five seconds', async () => {
    const there = await origin(theirs);
    const definitions = await open({ upstreamUrl: there.url });
    const before = await definitions.current(LOCAL);
    there.answer = reset;
    definitions.clock.now += 61 * SECOND;
    await eventually(async () => outline(await definitions.current(LOCAL)), 'Theirs stale');
    const attempts = there.journal.length;
    for (let i = 0; i < 10; i++) await definitions.current(LOCAL);
    for (let i = 0; i < 10; i++) await definitions.refreshed(LOCAL);
    expect(there.journal.length).toBe(attempts);
    definitions.clock.now += 5 * SECOND;
    const after = await definitions.refreshed(LOCAL);
    expect(there.journal.length).toBeGreaterThan(attempts);
    expect(before.ok && after.ok && before.definitions.version === after.definitions.version).toBe(
      true,
    );
    there.answer = theirs;
    definitions.clock.now += 5 * SECOND;
    expect(outline(await definitions.refreshed(LOCAL))).toBe('Theirs');
  });

  test.each([
    [23 * HOUR, 'Theirs stale'],
    [25 * HOUR, 'nothing, again after 5 s'],
  ])('for %i ms it says: %s; prompts go on with the last answer', async (ms, wanted) => {
    const there = await origin(theirs);
    const definitions = await open({ upstreamUrl: there.url });
    await definitions.current(LOCAL);
    there.answer = reset;
    definitions.clock.now += ms;
    expect(outline(await definitions.refreshed(LOCAL))).toBe(wanted);
    expect(Object.keys(await definitions.info(LOCAL))).toEqual(['Theirs']);
  });

  test('it is left alone for as long as it asks for', async () => {
    const there = await origin(status(503, { 'retry-after': '30' }));
    const definitions = await open({ upstreamUrl: there.url });
    expect(outline(await definitions.current(LOCAL))).toBe('nothing, again after 30 s');
    definitions.clock.now += 29 * SECOND;
    await definitions.refreshed(LOCAL);
    expect(there.journal.length).toBe(1);
  });

  test('a text that cannot be stored leaves nothing on the disk', async () => {
    const copiesDir = await tempFolder('definitions');
    const there = await origin(theirs);
    const first = await open({ upstreamUrl: there.url, copiesDir });
    await first.current(LOCAL);
    await first.close();
    const [name = ''] = await readdir(copiesDir);
    await rm(join(copiesDir, name));
    await mkdir(join(copiesDir, name));
    const second = await open({ upstreamUrl: there.url, copiesDir });
    expect(outline(await second.current(LOCAL))).toBe('Theirs');
    await second.close();
    expect(await readdir(copiesDir)).toEqual([name]);
  });

  test('refusals that never end take no connection away', async () => {
    const there = await origin((_req, res) => void res.writeHead(404).write('{'));
    const definitions = await open({ upstreamUrl: there.url });
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect(outline(await definitions.refreshed(LOCAL))).toBe('Embedded stand-in');
      expect(there.journal.length).toBe(2 * attempt);
      definitions.clock.now += 60 * SECOND;
    }
  });

  test('another upstream’s copy is none', async () => {
    const copiesDir = await tempFolder('definitions');
    const there = await origin(theirs);
    const before = await open({ upstreamUrl: there.url, copiesDir });
    await before.current(LOCAL);
    await before.close();
    const other = await origin(reset);
    const definitions = await open({ upstreamUrl: other.url, copiesDir });
    expect(outline(await definitions.current(LOCAL))).toMatch(/^nothing/);
    other.answer = honest(classes('Others'));
    definitions.clock.now += 5 * SECOND;
    await definitions.current(LOCAL);
    await definitions.close();
    expect((await readdir(copiesDir)).length).toBe(1);
  });
});
