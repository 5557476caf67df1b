import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createPublicAddresses } from '../../src/http/public-address.ts';

type Headers = { readonly [name: string]: string };

const PROXY = '10.0.0.1';
const INNER_PROXY = '10.0.0.2';
const CLIENT = '203.0.113.9';

function callFrom(remoteAddress: string, headers: Headers, more: object = {}) {
  const socket = { remoteAddress, ...more };
  return { headers: { host: 'inside:8188', ...headers }, socket } as unknown as Pick<
    IncomingMessage,
    'headers' | 'socket'
  >;
}

const FORGED: Headers = {
  'x-forwarded-for': '198.51.100.1',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-forwarded-prefix': '/evil',
  forwarded: 'for=198.51.100.1;host=evil.example;proto=https',
};

const trusting = (...trustedProxies: string[]) => createPublicAddresses({ trustedProxies });

describe('without settings', () => {
  test('links are those of the request, and every forwarding header is ignored', () => {
    const addresses = createPublicAddresses();
    const call = callFrom('127.0.0.1', FORGED);
    expect(addresses.of(call)).toEqual({
      origin: 'http://inside:8188',
      prefix: '',
      base: 'http://inside:8188',
      isStated: false,
    });
    expect([addresses.forwardedHostOf(call), addresses.clientOf(call)]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('a TLS connection is https', () => {
    const call = callFrom('127.0.0.1', {}, { encrypted: true });
    expect(createPublicAddresses().of(call)?.base).toBe('https://inside:8188');
  });

  test.each(['', 'a/b', 'a b', 'user@host', 'a:99999'])('Host %j is no address', (host) => {
    expect(createPublicAddresses().of(callFrom('127.0.0.1', { host }))).toBeUndefined();
  });
});

describe('a peer that is not trusted', () => {
  test.each([
    ['another address', [PROXY], CLIENT],
    ['an address beside the block', ['10.0.0.0/30'], '10.0.0.4'],
    ['a private address, where loopback is trusted', ['loopback'], '192.168.1.2'],
    ['a connection that is gone', [PROXY], ''],
  ])('is ignored wholly: %s', (_, trusted, peer) => {
    const addresses = trusting(...trusted);
    const call = callFrom(peer, FORGED);
    expect(addresses.of(call)).toMatchObject({ base: 'http://inside:8188', isStated: false });
    expect(addresses.prefixOf(call)).toBe('');
    expect(addresses.forwardedHostOf(call)).toBeUndefined();
    expect(addresses.clientOf(call)).toBeUndefined();
  });
});

describe('a trusted proxy', () => {
  test.each([
    [[PROXY], PROXY],
    [['10.0.0.0/8'], PROXY],
    [['loopback'], '127.0.0.1'],
    [['loopback'], '::1'],
    [['loopback'], '::ffff:127.0.0.1'],
    [['uniquelocal'], '172.18.0.3'],
    [['192.0.2.1', 'uniquelocal'], 'fd00::1'],
  ])('%j is believed when it is %s', (trusted, peer) => {
    const call = callFrom(peer, { 'x-forwarded-host': 'comfy.example.com' });
    expect(trusting(...trusted).of(call)?.base).toBe('http://comfy.example.com');
  });

  test.each([
    [{ 'x-forwarded-proto': 'https' }, 'https://inside:8188'],
    [{ 'x-forwarded-proto': 'WSS' }, 'https://inside:8188'],
    [{ 'x-forwarded-proto': 'javascript' }, 'http://inside:8188'],
    [{ 'x-forwarded-host': 'h.example:8443' }, 'http://h.example:8443'],
    [{ 'x-forwarded-prefix': '/comfy/' }, 'http://inside:8188/comfy'],
    [{ 'x-forwarded-prefix': '/a/b' }, 'http://inside:8188/a/b'],
    [{ 'x-forwarded-prefix': '/' }, 'http://inside:8188'],
    [{ 'x-forwarded-prefix': '//evil.example' }, 'http://inside:8188'],
    [{ 'x-forwarded-prefix': '/a/../b' }, 'http://inside:8188'],
    [{ 'x-forwarded-prefix': '/a?b' }, 'http://inside:8188'],
    [{ 'x-forwarded-prefix': 'evil' }, 'http://inside:8188'],
    [{ forwarded: 'for=203.0.113.9;proto=https;host=h.example' }, 'https://h.example'],
    [{ forwarded: 'for=203.0.113.9;proto=https;host="h.example:8443"' }, 'https://h.example:8443'],
    [{ forwarded: 'for=;;;' }, 'http://inside:8188'],
  ] as const)('%j: links begin with %s', (headers, base) => {
    expect(trusting(PROXY).of(callFrom(PROXY, headers))?.base).toBe(base);
  });

  test('adds its values behind those its client sent: the last one counts', () => {
    const call = callFrom(PROXY, {
      'x-forwarded-for': `127.0.0.1, ${CLIENT}`,
      'x-forwarded-host': 'evil.example, comfy.example.com',
      'x-forwarded-proto': 'http, https',
      'x-forwarded-prefix': '/evil, /comfy',
    });
    expect(trusting(PROXY).of(call)?.base).toBe('https://comfy.example.com/comfy');
    expect(trusting(PROXY).clientOf(call)).toBe(CLIENT);
  });

  test('behind another one: the outer one counts, and its client is the client', () => {
    const headers = {
      'x-forwarded-for': `198.51.100.1, ${CLIENT}, ${PROXY}`,
      'x-forwarded-host': 'evil.example, comfy.example.com, inner.example',
      'x-forwarded-proto': 'http, https, http',
    };
    const call = callFrom(INNER_PROXY, headers);
    expect(trusting('10.0.0.0/8').of(call)?.base).toBe('https://comfy.example.com');
    expect(trusting('10.0.0.0/8').clientOf(call)).toBe(CLIENT);
    // Trusted alone, the inner one is believed about the outer one only.
    expect(trusting(INNER_PROXY).of(call)?.base).toBe('http://inner.example');
    expect(trusting(INNER_PROXY).clientOf(call)).toBe(PROXY);
  });

  test('that writes Forwarded adds an element at the end', () => {
    const element = `for="${CLIENT}:4711";proto=https;host=comfy.example.com`;
    const call = callFrom(PROXY, { forwarded: `for=127.0.0.1;host=evil.example, ${element}` });
    expect(trusting(PROXY).of(call)?.base).toBe('https://comfy.example.com');
    expect(trusting(PROXY).clientOf(call)).toBe(CLIENT);
    const v6 = callFrom(PROXY, { forwarded: 'for="[2001:db8::7]:4711"' });
    expect(trusting(PROXY).clientOf(v6)).toBe('2001:db8::7');
  });

  test('that writes X-Forwarded-* is believed before a Forwarded it only hands on', () => {
    const call = callFrom(PROXY, {
      'x-forwarded-host': 'comfy.example.com',
      forwarded: 'host=evil.example;proto=https',
    });
    expect(trusting(PROXY).of(call)?.base).toBe('http://comfy.example.com');
  });

  test('cannot put anything but an address into the log', () => {
    const call = callFrom(PROXY, { 'x-forwarded-for': 'password=x' });
    expect(trusting(PROXY).clientOf(call)).toBeUndefined();
  });
});

test('the public URL counts before all headers', () => {
  const publicUrl = { origin: 'https://comfy.example.com', prefix: '/comfy' };
  const addresses = createPublicAddresses({ publicUrl, trustedProxies: [PROXY] });
  const call = callFrom(PROXY, FORGED);
  expect(addresses.of(call)).toMatchObject({
    base: 'https://comfy.example.com/comfy',
    isStated: true,
  });
  expect(addresses.prefixOf(call)).toBe('/comfy');
});
