// Notifications on hosted sockets while their prompts wait.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { type Pair, openPair, usePair } from '../support/processes/holdover-before-hostile.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const NEXT_YEAR = new Date().getUTCFullYear() + 1;

const notices = ({ frames }: Recorder): string[] =>
  frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'notification' ? [frame.data.value as string] : [],
  );

/** Waits of prompts that are sent again or looked for, cut down. */
const LIMITS = {
  outbox: {
    notSentMs: { first: 50, last: 200 },
    searchMs: { first: 40, last: 120 },
    answering: { notSentMs: [], unknownMs: [], searchMs: 40, limitMs: 100 },
  },
};

/** Two sockets of a user of their own. */
async function listen({ upstream, holdover }: Pair) {
  upstream.script(runsToCompletion());
  const headers = { 'X-API-Key': randomUUID() };
  const socketOf = async (query: string): Promise<Recorder> => {
    const socket = await connect(holdover.wsUrl, { clientId: 'mine', query, headers });
    onTestFinished(() => socket.socket.terminate());
    return socket;
  };
  const send = (body: object) =>
    postPrompt(holdover.url, { client_id: 'mine', ...body }, { headers });
  return {
    send,
    hosted: await socketOf(`token=${headers['X-API-Key']}`),
    local: await socketOf(''),
  };
}

async function announce(brownout: string) {
  const pair = await openPair({ args: ['--brownout', brownout], limits: LIMITS });
  onTestFinished(() => pair.close());
  return { ...pair, ...(await listen(pair)) };
}

describe('a prompt', () => {
  const pair = usePair({ limits: LIMITS });

  test('that waits for room is said to wait, to hosted sockets only', async () => {
    const { upstream } = pair;
    const { send, hosted, local } = await listen(pair);
    upstream.once('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '0' }));
    const { status, body } = await send({ prompt: flat() });
    expect(status).toBe(200);
    await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
    expect(notices(hosted)).toEqual([
      expect.stringMatching(`^Prompt ${body.prompt_id} waits: .* need not submit it again`),
    ]);
    expect(notices(local)).toEqual([]);
  });

  test('that the service lost is said to be retried, to hosted sockets only', async () => {
    const { upstream } = pair;
    const { send, hosted, local } = await listen(pair);
    upstream.script(async () => {});
    const { body } = await send({ prompt: flat({ prefix: 'lost' }) });
    expect(notices(hosted)).toEqual([]);
    upstream.script(runsToCompletion());
    upstream.jobs.clear();
    await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
    expect(notices(hosted)).toEqual([
      expect.stringMatching(
        `^Prompt ${body.prompt_id} will be retried: .* need not submit it again`,
      ),
    ]);
    expect(notices(local)).toEqual([]);
  });

  test('whose outcome is unknown is said to be looked for, to hosted sockets only', async () => {
    const { upstream } = pair;
    const { send, hosted, local } = await listen(pair);
    upstream.once('submit', fault.claimAndDie({ withJob: true }));
    upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
    const prompt_id = 'which-was-sent';
    const answer = await send({ prompt: flat(), prompt_id });
    expect(answer.status).toBe(500);
    await expect.poll(() => notices(hosted)).toHaveLength(1);
    upstream.always('list', (exchange) => exchange.honestly());
    await Promise.all([hosted, local].map((socket) => socket.untilDone(prompt_id)));
    expect(notices(hosted)).toEqual([
      expect.stringMatching(
        `^Prompt ${prompt_id} is being looked for: .* need not submit it again`,
      ),
    ]);
    expect(notices(local)).toEqual([]);
  });
});

test('a brownout that lies ahead is announced on connecting', async () => {
  const from = `${NEXT_YEAR}-06-01T08:00:00Z`;
  const { hosted, local } = await announce(`from=${from},to=${NEXT_YEAR}-06-01T09:00:00Z`);
  await expect.poll(() => notices(hosted)).toHaveLength(1);
  expect(notices(hosted)[0]).toContain(`${NEXT_YEAR}-06-01T08:00:00.000Z to `);
  await local.until(() => true);
  expect(notices(local)).toEqual([]);
});

test('a brownout is announced to the program it is for, also on a socket that is open when it comes near', async () => {
  const announcedMs = Date.now() + 6_000;
  const from = new Date(announcedMs + 600_000).toISOString();
  const { holdover, hosted } = await announce(`from=${from},delay-ms=500,client=old-script`);
  const headers = { 'User-Agent': 'Old-Script/1.0' };
  const expectedDifferences = await connect(holdover.wsUrl, {
    clientId: 'old',
    query: 'token=k',
    headers,
  });
  onTestFinished(() => expectedDifferences.socket.terminate());
  await expect.poll(() => notices(expectedDifferences)).toHaveLength(1);
  await expect.poll(() => notices(expectedDifferences), { timeout: 40_000 }).toHaveLength(2);
  expect(Date.now()).toBeGreaterThanOrEqual(announcedMs);
  const text = expect.stringContaining(`from ${from}: your calls may be held up for 0.5 s each`);
  expect(notices(expectedDifferences)).toEqual([text, text]);
  expect(notices(hosted)).toEqual([]);
});
