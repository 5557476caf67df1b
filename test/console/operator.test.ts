import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createOperatorCheck } from '../../src/auth/operator.ts';

const NO_PROXY = { publicUrl: undefined, trustedProxies: [], allowedHosts: [] };

type Call = Parameters<ReturnType<typeof createOperatorCheck>>[0];

function call(
  headers: IncomingMessage['headers'] = {},
  { address = '127.0.0.1', httpVersion = '1.1' } = {},
): Call {
  const socket = { remoteAddress: address } as Call['socket'];
  return { headers: { host: '127.0.0.1:8188', ...headers }, socket, httpVersion };
}

describe('the operator without a token', () => {
  const check = createOperatorCheck({ localToken: undefined, proxy: NO_PROXY });

  test.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.9.1'])('calls from %s', (address) => {
    expect(check(call({}, { address }))).toBeNull();
  });

  test.each(['10.0.0.5', '::ffff:10.0.0.5', '', '1127.0.0.1', 'fe80::1'])(
    'does not call from %j',
    (address) => {
      expect(check(call({}, { address }))).not.toBeNull();
    },
  );

  test.each([
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-prefix',
    'x-forwarded-client-cert',
    'x-real-ip',
    'x-client-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'x-envoy-external-address',
    'x-request-id',
    'fastly-client-ip',
    'client-ip',
    'forwarded-for',
    'tailscale-user-login',
    'cdn-loop',
  ])('does not call with %s', (name) => {
    expect(check(call({ [name]: 'x' }))).not.toBeNull();
  });

  test.each(['http://evil.example', 'http://127.0.0.1:3000', 'https://127.0.0.1:8188', 'null'])(
    'is no page of the origin %s, whatever --enable-cors-header allows',
    (origin) => {
      expect(check(call({ origin }))).not.toBeNull();
    },
  );

  test.each([{ origin: 'http://127.0.0.1:8188' }, { 'x-api-key': 'k' }, { 'holdover-page': '1' }])(
    'calls with %j',
    (headers) => {
      expect(check(call(headers))).toBeNull();
    },
  );

  test('does not call through a proxy that adds no header', () => {
    expect(check(call({}, { httpVersion: '1.0' }))).not.toBeNull();
    expect(check(call({ connection: 'close' }))).not.toBeNull();
  });

  test.each(['evil.example', 'evil.example:8188', '127.0.0.1.evil.example', '', 'localhost.evil'])(
    'does not call the host %j: a page may have rebound its name',
    (host) => {
      expect(check(call({ host }))).not.toBeNull();
    },
  );

  test.each(['localhost', 'localhost:1', '127.0.0.1', '[::1]:8188'])('may call %s', (host) => {
    expect(check(call({ host }))).toBeNull();
  });

  test.each([
    { ...NO_PROXY, trustedProxies: ['loopback'] },
    { ...NO_PROXY, publicUrl: { origin: 'https://example.com', prefix: '' } },
    {
      ...NO_PROXY,
      allowedHosts: [{ hostname: 'example.com', port: undefined, hasSubdomains: false }],
    },
  ])('is unknown where a proxy is set up: %j', (proxy) => {
    const behind = createOperatorCheck({ localToken: undefined, proxy });
    expect(behind(call())).not.toBeNull();
  });
});

test('with a token, every caller that was let in has shown it', () => {
  const check = createOperatorCheck({ localToken: 'token', proxy: NO_PROXY });
  const far = call({ 'x-forwarded-for': '10.0.0.5' }, { address: '10.0.0.1' });
  expect(check(far)).toBeNull();
});
