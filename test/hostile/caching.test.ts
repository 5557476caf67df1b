// A shared cache hands no answer of one user to another: only files of a front end are public.
import { Agent } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONSOLE_PATHS } from '../../src/console/console-routes.ts';
import { SIGNED_VIEW_PATH } from '../../src/auth/signed-view.ts';
import { ROUTES } from '../support/app/all-routes.ts';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { type Called, call } from '../support/clients/raw-call.ts';
import { say, upgradeText } from '../support/clients/raw-socket.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

/** v1 takes a path that ends so for a picture. */
const NAME = 'x.png';
const USERS = ['one', 'two'];

const others = [...CONSOLE_PATHS, SIGNED_VIEW_PATH, '/metrics', '/nope.png', '/api/nope.js'];
const CALLS = [
  ...ROUTES.map(([, { method, path }]) => ({ method, path: path.replaceAll(/:\w+/g, NAME) })),
  ...others.map((path) => ({ method: 'GET', path })),
  { method: 'GET', path: `/view?type=input&filename=${NAME}` },
  { method: 'GET', path: `/view?type=input&filename=${NAME}&preview=webp` },
  { method: 'GET', path: `/api/view?type=input&filename=${NAME}` },
];

const server = useHoldover();
const agent = new Agent({ keepAlive: true });

function ask(user: string, method: string, path: string): Promise<Called> {
  const headers = { 'X-API-Key': user };
  const body = method === 'POST' || method === 'PATCH' ? '{}' : undefined;
  return call(server.url, path, { method, headers, agent, ...(body && { body }) });
}

beforeAll(async () => {
  for (const user of USERS) {
    const bytes = await pngOf();
    await uploadInput(server.url, { name: NAME, bytes }, { 'X-API-Key': user });
    for (const path of [`/settings/${NAME}`, `/userdata/${NAME}`]) await ask(user, 'POST', path);
  }
});
afterAll(async () => {
  agent.destroy();
});

test('the tables have routes', () => {
  expect(CALLS.length).toBeGreaterThan(120);
});

test.each(CALLS)('$method $path is private to its caller', async ({ method, path }) => {
  for (const user of USERS) {
    const { status, headers } = await ask(user, method, path);
    const hasValidator = headers.etag !== undefined || headers['last-modified'] !== undefined;
    const caching = hasValidator ? 'private, no-cache' : 'private, no-store';
    expect([status, headers['cache-control']]).toEqual([status, caching]);
  }
});

test.each(['/ws?clientId=%01', '/nope.png'])('a refused upgrade of %s is private', async (path) => {
  const { status, headers } = await say(server.port, upgradeText(path));
  expect(status).toBeGreaterThanOrEqual(400);
  expect(headers['cache-control']).toBe('private, no-store');
});

test('what has a validator is still a 304 for its caller', async () => {
  const paths = ['/object_info', `/userdata/${NAME}`, `/view?type=input&filename=${NAME}`];
  await ask('one', 'POST', `/userdata/${NAME}`);
  for (const path of paths) {
    const { etag = '' } = (await ask('one', 'GET', path)).headers;
    const headers = { 'X-API-Key': 'one', 'If-None-Match': etag };
    const again = await call(server.url, path, { headers });
    expect([again.status, again.headers['cache-control']]).toEqual([304, 'private, no-cache']);
  }
});
