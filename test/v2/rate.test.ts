import { expect, onTestFinished, test } from 'vitest';
import { createPublicAddresses } from '../../src/http/public-address.ts';
import { RateLimiter } from '../../src/lib/rate-limiter.ts';
import { createTestV2App } from '../support/app/v2-routes.ts';
import { ASSET_ID, JOB_ID } from '../support/upstreams/fake-jobs.ts';

const JOB = `/api/v2/jobs/${JOB_ID}`;

async function createLimitedApp(perMinute: number) {
  let nowMs = 0;
  const limiter = new RateLimiter(() => nowMs);
  const app = await createTestV2App({
    rate: { limiter, perMinute },
    links: {
      addresses: createPublicAddresses(),
      signer: { sign: () => ({ query: '', expiresAt: '' }), userOf: () => 'anna' },
    },
  });
  onTestFinished(() => app.close());
  return { ...app, advance: (ms: number) => void (nowMs += ms) };
}

// "429: ErrorEnvelope, code `rate_limited`, header `Retry-After` (integer seconds). Account-scoped;
// can be returned even for a job id the caller does not own or that does not exist, without
// revealing which."
test.each([
  ['a job', 'GET', JOB],
  ['a job that does not exist', 'GET', '/api/v2/jobs/x'],
  ['a submission', 'POST', '/api/v2/jobs'],
  ['a file', 'GET', `/api/v2/assets/${ASSET_ID}/content`],
])('a caller whose allowance is spent is refused: %s', async (_, method, path) => {
  const app = await createLimitedApp(2);
  for (const known of [JOB, '/api/v2/jobs/x']) await app.ask(known);
  const refused = await app.ask(path, { method });
  expect([refused.status, refused.headers['retry-after'], refused.json()]).toEqual([
    429,
    '30',
    {
      error: {
        code: 'rate_limited',
        message: 'The allowance of 2 requests in a rolling minute is spent.',
        details: null,
      },
    },
  ]);
});

test('the allowance is of one caller, and grows again', async () => {
  const app = await createLimitedApp(2);
  for (let i = 0; i < 3; i++) await app.ask(JOB);
  expect((await app.ask(JOB, { user: 'ben' })).status).toBe(200);
  app.advance(29_000);
  expect((await app.ask(JOB)).status).toBe(429);
  app.advance(1000);
  expect((await app.ask(JOB)).status).toBe(200);
});

test('calls without an account are not counted: health, and links with a signature', async () => {
  const app = await createLimitedApp(1);
  await app.ask(JOB);
  expect((await app.ask('/api/v2/health')).status).toBe(200);
  const link = `/api/v2/assets/${ASSET_ID}/content?user=anna&expires=1&signature=x`;
  expect((await app.ask(link, { user: '' })).status).toBe(200);
  expect((await app.ask(JOB, { user: '' })).status).toBe(401);
});
