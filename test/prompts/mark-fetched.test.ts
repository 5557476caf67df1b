import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { createMarkFetched } from '../../src/prompts/mark-fetched.ts';
import { fakePorts } from './fake-ports.ts';

const BROWSER = { 'user-agent': 'Mozilla/5.0' };

test.each([
  ['GET', {}, 'by id', ['p']],
  ['GET', {}, 'listed', ['p']],
  ['GET', BROWSER, 'by id', ['p']],
  ['GET', BROWSER, 'listed', []],
  // A probe that asks for the headers has no result.
  ['HEAD', {}, 'by id', []],
  ['HEAD', {}, 'listed', []],
] as const)('%s with %j, %s, has fetched %j', (method, headers, source, fetched) => {
  const noted: string[] = [];
  const hub = { channels: { discardFetched: (_: string, ids: readonly string[]) => ids } };
  const eventLog = { resultFetched: (_: string, id: string) => void noted.push(id) };
  const markFetched = createMarkFetched(fakePorts({ frames: { hub }, records: { eventLog } }));
  const req = { method, headers, url: '/history/p' } as unknown as IncomingMessage;
  markFetched({ ctx: { req }, caller: { user: 'ann' } }, source, ['p']);
  expect(noted).toEqual(fetched);
});
