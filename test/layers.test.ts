import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** What each room may import besides itself; root files by their name. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  lib: ['wire'],
  wire: [],
  nodes: ['wire', 'lib'],
  translate: ['wire'],
  ledger: ['wire', 'lib', 'redis', 'telemetry', 'within'],
  http: ['wire', 'lib', 'spool', 'telemetry'],
  engine: [
    'crash-point',
    'lib',
    'http',
    'wire',
    'nodes',
    'ledger',
    'telemetry',
    'hash',
    'spool',
    'multipart',
  ],
  v1: [
    'crash-point',
    'lib',
    'wire',
    'translate',
    'ledger',
    'telemetry',
    'spool',
    'multipart',
    'http',
    'within',
  ],
  v2: ['lib', 'wire', 'telemetry', 'hash'],
  'object-info': ['wire', 'telemetry', 'config', 'within'],
  models: ['lib', 'wire', 'http', 'ledger', 'telemetry', 'hash', 'spool'],
  passthrough: ['wire', 'http', 'telemetry'],
  folders: [
    'crash-point',
    'wire',
    'translate',
    'v1',
    'ledger',
    'telemetry',
    'spool',
    'new-name',
    'within',
  ],
  config: [],
  telemetry: ['wire'],
  hash: [],
  spool: ['wire', 'hash', 'new-name'],
  'new-name': [],
  multipart: ['wire', 'spool'],
  backup: [
    'wire',
    'app',
    'ledger',
    'engine',
    'hash',
    'spool',
    'data-dir',
    'lib',
    'config',
    'crash-point',
  ],
  within: [],
  'crash-point': [],
  'http-server': ['wire'],
  trace: ['wire'],
  metrics: ['trace'],
  front: ['wire', 'http', 'metrics', 'passthrough', 'telemetry', 'v1'],
  session: ['wire'],
  tap: ['lib', 'wire', 'session', 'telemetry', 'trace'],
  'data-dir': ['app', 'ledger'],
  'spool-dir': [],
  redis: ['telemetry'],
  queued: [
    'crash-point',
    'lib',
    'wire',
    'nodes',
    'ledger',
    'engine',
    'telemetry',
    'redis',
    'within',
  ],
  'warm-up': ['telemetry', 'models'],
  cluster: ['lib', 'wire', 'translate', 'telemetry', 'redis', 'v1', 'within'],
};

/** Beyond their room these rooms see the ledger's interface only, never a store. */
const INTERFACE_ONLY = ['engine', 'queued', 'v1', 'models', 'folders'];

/** They assemble the rest. */
const KNOWS_EVERYONE = new Set([
  'app',
  'replicas',
  'cli',
  'server',
  'same-address',
  'store',
  'upstream',
  'main',
  'cli',
  'demo',
  'cli',
]);

const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(SRC, name), 'utf8') }));

function roomOf(name: string): string {
  return name.split('/')[0]?.replace(/\.ts$/, '') ?? '';
}

function importsOf(file: { name: string; text: string }): string[] {
  return [...file.text.matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)].map(([, target = '']) =>
    relative(SRC, resolve(SRC, dirname(file.name), target)),
  );
}

describe('the folder list is the architecture', () => {
  test('there are files to check, and their imports are found', () => {
    expect(FILES.length).toBeGreaterThan(30);
    expect(FILES.flatMap(importsOf).length).toBeGreaterThan(100);
  });

  test.each(FILES.filter(({ name }) => !KNOWS_EVERYONE.has(roomOf(name))))(
    '$name imports only what its room may',
    (file) => {
      const room = roomOf(file.name);
      const allowed = [room, ...(MAY_IMPORT[room] ?? [])];
      expect(importsOf(file).filter((target) => !allowed.includes(roomOf(target)))).toEqual([]);
    },
  );

  test.each(FILES.filter(({ name }) => INTERFACE_ONLY.includes(roomOf(name))))(
    '$name knows no store',
    (file) => {
      const stores = importsOf(file).filter((target) => roomOf(target) === 'ledger');
      expect(stores.filter((target) => target !== 'ledger/ledger.ts')).toEqual([]);
    },
  );

  test('of the old surface the cluster knows two ports only', () => {
    const theirs = FILES.filter(({ name }) => roomOf(name) === 'cluster').flatMap(importsOf);
    const surface = new Set(theirs.filter((target) => roomOf(target) === 'v1'));
    expect([...surface].toSorted()).toEqual(['v1/log-share.ts', 'v1/prompt-journal.ts']);
  });

  test('translate and wire do no I/O and know no clock or randomness', () => {
    const pure = FILES.filter(({ name }) => ['translate', 'wire'].includes(roomOf(name)));
    const impure =
      /from 'node:(?!stream')|\bDate\.now\(|new Date\(\)|Math\.random\(|setTimeout\(|\bfetch\(/;
    expect(pure.filter(({ text }) => impure.test(text)).map(({ name }) => name)).toEqual([]);
  });

  test.each(FILES)('$name is at most 300 lines', ({ text }) => {
    expect(text.split('\n').length).toBeLessThanOrEqual(301);
  });

  test('no room has a second floor', () => {
    expect(FILES.map(({ name }) => name).filter((name) => name.split('/').length > 2)).toEqual([]);
  });
});
