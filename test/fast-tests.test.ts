import { expect, test } from 'vitest';
import { fastTests } from './fast-tests.ts';

const { spawn } = process.getBuiltinModule('node:child_process');
const { createServer } = process.getBuiltinModule('node:net');

test('tests of pure code are fast, tests of a server are not', () => {
  const paths = fastTests();
  expect(paths).toContain('test/fast-tests.test.ts');
  expect(paths).toContain('test/translate/progress.test.ts');
  expect(paths).not.toContain('test/acceptance/requirements.test.ts');
  expect(paths).not.toContain('test/ledger/redis.test.ts');
  expect(paths.length).toBeGreaterThan(80);
});

test('a fast test that opens a port fails', () => {
  expect(() => createServer().listen(0)).toThrow('a fast test must not open a port');
});

test('a fast test that starts a process fails', () => {
  expect(() => spawn(process.execPath)).toThrow('a fast test must not start a process');
});
