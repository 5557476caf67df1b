// Calls that no handler sees are refused in the form of the API they are for.
import { afterEach, describe, expect, test } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type RawAnswer, dial, requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy, expectNoLeak } from '../support/processes/expect-healthy.ts';

const server = useHoldover();
afterEach(() => expectHealthy(server));

/** Each API: a path of it, the headers of its callers, and the check of an error. */
const APIS: readonly (readonly [
  name: string,
  path: string,
  headers: readonly string[],
  expectError: (answer: RawAnswer) => void,
])[] = [
  ['v2', '/api/v2/jobs', [], expectV2Error],
  ['the model router', '/v1/models/local/echo', ['X-API-Key: k'], expectRouterError],
  ['hosted v1', '/api/queue', ['X-API-Key: k'], expectHostedError],
];

function expectV2Error({ body }: RawAnswer): void {
  const error = { code: expect.any(String), message: expect.any(String), details: null };
  expect(JSON.parse(body)).toEqual({ error });
}

function expectRouterError({ body, headers }: RawAnswer): void {
  const { error_type: type, detail } = JSON.parse(body);
  expect({ type, detail }).toEqual({ type: 'invalid_input', detail: expect.any(String) });
  expect(headers['x-service-error-type']).toBe(type);
  expect(headers['x-service-request-id']).toMatch(/^[\da-f-]{36}$/);
}

function expectHostedError({ body }: RawAnswer): void {
  expect(JSON.parse(body)).toEqual({ code: expect.any(String), message: expect.any(String) });
}

/** Requests that Node does not read, or not to their end. */
const UNREADABLE: readonly (readonly [
  name: string,
  status: number,
  bytes: (path: string, headers: readonly string[]) => string,
])[] = [
  ['with a space in its address', 400, (path, headers) => requestText(`${path}/a b`, { headers })],
  ['with a letter in its address', 400, (path, headers) => requestText(`${path}/é`, { headers })],
  ['of an unknown method', 400, (path, headers) => requestText(path, { method: 'FOO', headers })],
  [
    'of a later version',
    400,
    (path, headers) => requestText(path, { headers }).replace('1.1', '9.9'),
  ],
  ['with a NUL in a header', 400, (path, headers) => withHeader(path, headers, 'X: a\0b')],
  [
    'with a space in the name of a header',
    400,
    (path, headers) => withHeader(path, headers, 'X Y: a'),
  ],
  [
    'of two lengths',
    400,
    (path, headers) => withHeader(path, headers, 'Content-Length: 1\r\nContent-Length: 2'),
  ],
  ['of a negative length', 400, (path, headers) => withHeader(path, headers, 'Content-Length: -1')],
  [
    'in an unknown coding',
    400,
    (path, headers) => withHeader(path, headers, 'Transfer-Encoding: x'),
  ],
  ['with a chunk of no size', 400, (path, headers) => chunked(path, headers, 'zz\r\n')],
  ['with a long extension', 413, (path, headers) => chunked(path, headers, longer('2;a='))],
  ['with an unknown expectation', 417, (path, headers) => withHeader(path, headers, 'Expect: foo')],
];

function longer(text: string): string {
  return `${text}${'a'.repeat(20_000)}`;
}

function withHeader(path: string, headers: readonly string[], line: string): string {
  return requestText(path, { method: 'POST', headers: [...headers, line] });
}

function chunked(path: string, headers: readonly string[], bytes: string): string {
  return `${withHeader(path, headers, 'Transfer-Encoding: chunked')}${bytes}\r\n`;
}

describe.each(APIS)('to %s', (_name, path, headers, expectError) => {
  test.each(UNREADABLE)('a request %s is %i', async (_what, status, bytes) => {
    const answer = await say(server.port, bytes(path, headers));
    expectNoLeak(answer);
    expect(answer.status).toBe(status);
    expectError(answer);
    expect(answer.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^[\w-]{36}$/),
      'x-content-type-options': 'nosniff',
    });
  });

  test('a request that is cut off is 400', async () => {
    const wire = await dial(server.port);
    wire.socket.end(`${withHeader(path, headers, 'Content-Length: 9')}12`);
    const answer = await wire.answer();
    expect(answer.status).toBe(400);
    expectError(answer);
  });

  test('a request without Host is 400', async () => {
    const lines = [`GET ${path} HTTP/1.1`, ...headers, 'Connection: close'];
    const answer = await say(server.port, `${lines.join('\r\n')}\r\n\r\n`);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('The Host header is missing');
  });

  test.each(['http://[', 'http://[::1', 'http://xn--'])(
    'a request with the address %s… is 400',
    async (address) => {
      const answer = await say(server.port, requestText(`${address}${path}`, { headers }));
      expect(answer.status).toBe(400);
      expect(answer.headers).toHaveProperty('x-request-id');
    },
  );
});

test('bytes behind a whole request are refused after it has been answered', async () => {
  const body = '{"clear":false}';
  const headers = ['Connection: keep-alive'];
  const text = requestText('/queue', { method: 'POST', headers, body });
  const { raw } = await say(server.port, `${text}EXTRA`);
  expect(raw).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*HTTP\/1\.1 400 Bad Request\r\n/);
});
