// Notifications on hosted sockets while their prompts wait.
import { expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { openPair } from '../support/processes/holdover-before-hostile.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const KEY = { 'X-API-Key': 'k' };
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

async function open(args: string[] = []) {
  const pair = await openPair({ args, limits: LIMITS });
  pair.upstream.script(runsToCompletion());
  const socketOf = async (query: string): Promise<Recorder> => {
    const socket = await connect(pair.holdover.wsUrl, { clientId: 'mine', query, headers: KEY });
    onTestFinished(() => socket.socket.terminate());
    return socket;
  };
  onTestFinished(async () => {
    await pair.holdover.dispose();
    await pair.upstream.close();
  });
  return { ...pair, hosted: await socketOf('token=k'), local: await socketOf('') };
}

test('a prompt that waits for room is said to wait, to hosted sockets only', async () => {
  const { holdover, upstream, hosted, local } = await open();
  upstream.once('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '0' }));
  const { status, body } = await postPrompt(
    holdover.url,
    { prompt: flat(), client_id: 'mine' },
    { headers: KEY },
  );
  expect(status).toBe(200);
  await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
  expect(notices(hosted)).toEqual([
    expect.stringMatching(`^Prompt ${body.prompt_id} waits: .* need not submit it again`),
  ]);
  expect(notices(local)).toEqual([]);
});

test('a prompt that the service lost is said to be retried, to hosted sockets only', async () => {
  const { holdover, upstream, hosted, local } = await open();
  upstream.script(async () => {});
  const first = flat({ prefix: 'lost' });
  const { body } = await postPrompt(
    holdover.url,
    { prompt: first, client_id: 'mine' },
    { headers: KEY },
  );
  expect(notices(hosted)).toEqual([]);
  upstream.script(runsToCompletion());
  upstream.jobs.clear();
  await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
  expect(notices(hosted)).toEqual([
    expect.stringMatching(`^Prompt ${body.prompt_id} will be retried: .* need not submit it again`),
  ]);
  expect(notices(local)).toEqual([]);
});

test('a prompt whose outcome is unknown is said to be looked for, to hosted sockets only', async () => {
  const { holdover, upstream, hosted, local } = await open();
  upstream.once('submit', fault.claimAndDie({ withJob: true }));
  upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
  const prompt_id = 'which-was-sent';
  const answer = await postPrompt(
    holdover.url,
    { prompt: flat(), client_id: 'mine', prompt_id },
    { headers: KEY },
  );
  expect(answer.status).toBe(500);
  await expect.poll(() => notices(hosted)).toHaveLength(1);
  upstream.always('list', (exchange) => exchange.honestly());
  await Promise.all([hosted, local].map((socket) => socket.untilDone(prompt_id)));
  expect(notices(hosted)).toEqual([
    expect.stringMatching(`^Prompt ${prompt_id} is being looked for: .* need not submit it again`),
  ]);
  expect(notices(local)).toEqual([]);
});

test('a brownout that lies ahead is announced on connecting', async () => {
  const from = `${NEXT_YEAR}-06-01T08:00:00Z`;
  const { hosted, local } = await open([
    '--brownout',
    `from=${from},to=${NEXT_YEAR}-06-01T09:00:00Z`,
  ]);
  await expect.poll(() => notices(hosted)).toHaveLength(1);
  expect(notices(hosted)[0]).toContain(`${NEXT_YEAR}-06-01T08:00:00.000Z to `);
  await local.until(() => true);
  expect(notices(local)).toEqual([]);
});

test('a brownout is announced to the program it is for, also on a socket that is open when it comes near', async () => {
  const announcedMs = Date.now() + 6_000;
  const from = new Date(announcedMs + 600_000).toISOString();
  const { holdover, hosted } = await open([
    '--brownout',
    `from=${from},delay-ms=500,client=old-script`,
  ]);
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
