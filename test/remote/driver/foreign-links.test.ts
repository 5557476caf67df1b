import { DEFAULT_REMOTE_LIMITS } from '../../../src/remote/limits.ts';
import type { LookupAddress, lookup } from 'node:dns';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  AddressRefused,
  addressScope,
  ForeignLinks,
} from '../../../src/remote/files/foreign-links.ts';
import type { RedirectHost } from '../../../src/config/upstream.ts';
import { type StorageHost, openStorageHost } from '../../support/upstreams/storage-host.ts';

const TIMEOUTS = { connectTimeoutMs: 500, readTimeoutMs: 500, bodyIdleTimeoutMs: 500 };
const LIMITS = { ...DEFAULT_REMOTE_LIMITS, ...TIMEOUTS };

let storage: StorageHost;
beforeAll(async () => {
  storage = await openStorageHost();
  storage.files.set('/file', Buffer.from('bytes'));
});
afterAll(() => storage.close());
beforeEach(() => storage.reset());

type Visit = {
  readonly origin: string;
  readonly link: string;
  readonly hosts?: readonly RedirectHost[];
  /** Answers of the resolver, one after the other; the last one again and again. */
  readonly addresses?: readonly (readonly string[])[];
};

async function visit({ origin, link, hosts, addresses }: Visit): Promise<number | string> {
  const resolve = addresses && resolver(addresses);
  const elsewhere = new ForeignLinks(origin, LIMITS, hosts, resolve);
  onTestFinished(() => elsewhere.close());
  const answer = await elsewhere.open(link, {});
  if (!answer.ok) return answer.cause instanceof AddressRefused ? 'refused' : answer.cause.message;
  answer.body.destroy();
  return answer.status;
}

function resolver(answers: readonly (readonly string[])[]): typeof lookup {
  let asked = 0;
  return ((_host: string, _options: object, done: (e: null, found: LookupAddress[]) => void) => {
    const addresses = answers[Math.min(asked++, answers.length - 1)] ?? [];
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  }) as unknown as typeof lookup;
}

const port = () => new URL(storage.url).port;
const here = () => `http://127.0.0.1:${port()}`;

describe('a link of an upstream stays on its own origin, or goes to the internet', () => {
  test.each([
    ['http://127.0.0.1:1', 'http://127.0.0.1:PORT/file'],
    ['http://localhost:1', 'http://127.0.0.1:PORT/file'],
    ['http://127.0.0.1:1', 'http://localhost:PORT/file'],
    ['http://127.0.0.1:1', 'http://10.0.0.1:PORT/file'],
    ['http://127.0.0.1:1', 'http://100.64.0.1:PORT/file'],
    ['http://127.0.0.1:1', 'http://[fd12::1]:PORT/file'],
    ['http://127.0.0.1:1', 'http://[::1]:PORT/file'],
    ['http://10.0.0.1', 'http://10.0.0.2/file'],
    ['http://8.8.8.8', 'http://127.0.0.1:PORT/file'],
    ['http://8.8.8.8', 'http://0x7f000001:PORT/file'],
    ['http://8.8.8.8', 'http://2130706433:PORT/file'],
    ['http://8.8.8.8', 'http://127.1:PORT/file'],
    ['http://8.8.8.8', 'http://[::ffff:127.0.0.1]:PORT/file'],
    ['http://8.8.8.8', 'http://[::127.0.0.1]:PORT/file'],
    ['http://8.8.8.8', 'http://localhost:PORT/file'],
    ['http://8.8.8.8', 'http://169.254.169.254/latest/meta-data/'],
    ['https://127.0.0.1', 'http://127.0.0.1:PORT/file'],
  ])('of %s to %s: refused', async (origin, link) => {
    expect(await visit({ origin, link: link.replace('PORT', port()) })).toBe('refused');
    expect(storage.visits).toEqual([]);
  });

  test('its own origin may be anywhere', async () => {
    expect(await visit({ origin: here(), link: `${here()}/file` })).toBe(200);
    const named = `http://localhost:${port()}`;
    expect(await visit({ origin: named, link: `${named}/file` })).toBe(200);
  });

  test('nor does a link that leads on', async () => {
    for (const to of ['http://169.254.169.254/', 'http://127.0.0.1:1/', 'http://localhost:1/']) {
      storage.once(({ res }) => void res.writeHead(302, { Location: to }).end());
      expect([to, await visit({ origin: here(), link: `${here()}/file` })]).toEqual([
        to,
        'refused',
      ]);
    }
  });
});

describe('a name', () => {
  const link = () => `http://store.example:${port()}/file`;
  const origin = 'http://8.8.8.8';

  test.each([
    [['127.0.0.1']],
    [['::1']],
    [['::ffff:127.0.0.1']],
    [['10.0.0.1', '192.168.0.1']],
    [['169.254.169.254']],
    [['fe80::1']],
  ])('that stands for %j is refused', async (addresses) => {
    expect(await visit({ origin, link: link(), addresses: [addresses] })).toBe('refused');
    expect(storage.visits).toEqual([]);
  });

  test('is judged by the lookup of the connection, whatever it stood for before', async () => {
    const hosts = [{ hostname: 'store.example', port: undefined }];
    const addresses = [['127.0.0.1'], ['169.254.169.254']];
    // Each connection asks anew, and uses the very answer it was given.
    const elsewhere = new ForeignLinks(origin, LIMITS, hosts, resolver(addresses));
    onTestFinished(() => elsewhere.close());
    storage.once(({ res }) => void res.writeHead(200, { Connection: 'close' }).end());
    const first = await elsewhere.open(link(), {});
    expect(first).toMatchObject({ ok: true, status: 200 });
    if (first.ok) await first.body.toArray();
    const second = await elsewhere.open(link(), {});
    expect(second).toMatchObject({ ok: false, cause: expect.any(AddressRefused) });
    expect(storage.visits).toHaveLength(1);
  });

  test('of which one address is private leads to the others only', async () => {
    const addresses = [['127.0.0.1', '192.0.2.1', '::1']];
    expect(await visit({ origin, link: link(), addresses })).toBe('refused');
    expect(storage.visits).toEqual([]);
  });
});

describe('hosts the operator names', () => {
  test.each([
    [{ hostname: '127.0.0.1' }, 'http://127.0.0.1:PORT/file', 200],
    [{ hostname: '127.0.0.1', port: 'PORT' }, 'http://127.0.0.1:PORT/file', 200],
    [{ hostname: '127.0.0.1', port: '1' }, 'http://127.0.0.1:PORT/file', 'refused'],
    [{ hostname: 'localhost' }, 'http://localhost:PORT/file', 200],
    [{ hostname: 'localhost' }, 'http://127.0.0.1:PORT/file', 'refused'],
    [{ hostname: 'store.example' }, 'http://localhost:PORT/file', 'refused'],
    [{ hostname: '169.254.169.254' }, 'http://169.254.169.254/', 'refused'],
  ] as readonly [RedirectHost, string, number | string][])(
    '%j: %s is %s',
    async (named, link, expected) => {
      const host = { hostname: named.hostname, port: named.port?.replace('PORT', port()) };
      const to = link.replace('PORT', port());
      expect(await visit({ origin: 'http://8.8.8.8', link: to, hosts: [host] })).toBe(expected);
    },
  );

  test('may be without encryption', async () => {
    const hosts = [{ hostname: '127.0.0.1', port: undefined }];
    expect(await visit({ origin: 'https://8.8.8.8', link: `${here()}/file`, hosts })).toBe(200);
  });

  test('are let in at each step of the way', async () => {
    storage.once(({ res }) => void res.writeHead(302, { Location: `${here()}/file` }).end());
    const hosts = [{ hostname: 'localhost', port: undefined }];
    const link = `http://localhost:${port()}/x`;
    expect(await visit({ origin: 'http://8.8.8.8', link, hosts })).toBe('refused');
    expect(storage.visits).toHaveLength(1);
  });
});

test('no credential and no header of the upstream’s goes along', async () => {
  await visit({ origin: here(), link: `${here()}/file` });
  const headers = Object.keys(storage.visits[0]?.headers ?? {});
  expect(headers.toSorted()).toEqual(['accept-encoding', 'connection', 'host', 'user-agent']);
});

test.each([
  ['1.1.1.1', 'public'],
  ['2606:4700::1111', 'public'],
  ['172.15.0.1', 'public'],
  ['172.16.0.1', 'private'],
  ['10.255.255.255', 'private'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'private'],
  ['100.127.255.255', 'private'],
  ['100.128.0.1', 'public'],
  ['fd12:3456::1', 'private'],
  ['127.8.8.8', 'private'],
  ['::1', 'private'],
  ['::ffff:127.0.0.1', 'private'],
  ['::ffff:7f00:1', 'private'],
  ['::ffff:10.0.0.1', 'private'],
  ['::ffff:100.64.0.1', 'private'],
  ['::ffff:8.8.8.8', 'public'],
  ['169.254.169.254', 'forbidden'],
  ['::ffff:169.254.169.254', 'forbidden'],
  ['fd00:ec2::254', 'forbidden'],
  ['100.100.100.200', 'forbidden'],
  ['fe80::1', 'forbidden'],
  ['0.0.0.0', 'forbidden'],
  ['::', 'forbidden'],
  ['::7f00:1', 'forbidden'],
  ['::ffff:0:7f00:1', 'forbidden'],
  ['224.0.0.1', 'forbidden'],
  ['255.255.255.255', 'forbidden'],
  ['64:ff9b::7f00:1', 'forbidden'],
  ['2002:7f00:1::', 'forbidden'],
  ['192.0.2.1', 'forbidden'],
])('%s is %s', (address, reach) => expect(addressScope(address)).toBe(reach));

test('a host that sends interim answers without end is left', async () => {
  let timer: NodeJS.Timeout | undefined;
  onTestFinished(() => clearInterval(timer));
  storage.once(({ res }) => {
    timer = setInterval(() => res.writeProcessing(), 5);
  });
  expect(await visit({ origin: here(), link: `${here()}/file` })).toMatch(/interim/);
});
