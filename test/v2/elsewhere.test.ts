import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { nearnessOf, nearnessOfHost } from '../../src/v2/addresses.ts';
import { createElsewhere } from '../../src/v2/elsewhere.ts';
import { type StorageHost, openStorageHost } from '../support/storage-host.ts';

const LIMITS = { connectTimeoutMs: 500, readTimeoutMs: 500, bodyIdleTimeoutMs: 500 };

let storage: StorageHost;
beforeAll(async () => {
  storage = await openStorageHost();
  storage.files.set('/file', Buffer.from('bytes'));
});
afterAll(() => storage.close());
beforeEach(() => storage.reset());

async function visit(origin: string, link: string): Promise<number | 'lost'> {
  const elsewhere = createElsewhere(origin, LIMITS);
  onTestFinished(() => elsewhere.close());
  const answer = await elsewhere.open(link, {});
  if (!answer.ok) return 'lost';
  answer.body.destroy();
  return answer.status;
}

describe('a link leads no nearer to this machine than its giver is', () => {
  const port = () => new URL(storage.url).port;
  test.each([
    ['http://127.0.0.1:1', 'http://127.0.0.1:PORT/file', 200],
    ['http://localhost:1', 'http://127.0.0.1:PORT/file', 200],
    ['http://127.0.0.1:1', 'http://localhost:PORT/file', 200],
    ['http://8.8.8.8', 'http://127.0.0.1:PORT/file', 'lost'],
    ['http://8.8.8.8', 'http://0x7f000001:PORT/file', 'lost'],
    ['http://8.8.8.8', 'http://[::ffff:127.0.0.1]:PORT/file', 'lost'],
    ['http://8.8.8.8', 'http://localhost:PORT/file', 'lost'],
    ['http://8.8.8.8', 'http://localhost.:PORT/file', 'lost'],
    ['http://10.0.0.1', 'http://127.0.0.1:PORT/file', 'lost'],
    ['https://127.0.0.1', 'http://127.0.0.1:PORT/file', 'lost'],
  ] as const)('of %s to %s: %s', async (origin, link, expected) => {
    expect(await visit(origin, link.replace('PORT', port()))).toBe(expected);
    expect(storage.visits).toHaveLength(expected === 'lost' ? 0 : 1);
  });

  test('nor does one that leads on', async () => {
    const to = 'http://169.254.169.254/latest/meta-data/';
    storage.once(({ res }) => void res.writeHead(302, { Location: to }).end());
    expect(await visit(storage.url, `${storage.url}/file`)).toBe('lost');
  });
});

test.each([
  ['1.1.1.1', 0],
  ['2606:4700::1111', 0],
  ['172.15.0.1', 0],
  ['172.16.0.1', 1],
  ['10.255.255.255', 1],
  ['192.168.1.1', 1],
  ['100.64.0.1', 1],
  ['fd12:3456::1', 1],
  ['127.8.8.8', 2],
  ['::1', 2],
  ['::ffff:127.0.0.1', 2],
  ['::ffff:10.0.0.1', 1],
  ['169.254.169.254', 3],
  ['::ffff:169.254.169.254', 3],
  ['fd00:ec2::254', 3],
  ['100.100.100.200', 3],
  ['fe80::1', 3],
  ['0.0.0.0', 3],
  ['::', 3],
  ['224.0.0.1', 3],
  ['255.255.255.255', 3],
  ['64:ff9b::7f00:1', 3],
  ['2002:7f00:1::', 3],
])('%s is as near as %i', (address, nearness) => {
  expect(nearnessOf(address)).toBe(nearness);
});

test.each([
  ['[::1]', 2],
  ['127.0.0.1', 2],
  ['localhost', 2],
  ['no-such-host.invalid', 0],
])('the host %s is as near as %i', async (host, nearness) => {
  expect(await nearnessOfHost(host)).toBe(nearness);
});
