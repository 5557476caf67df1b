// Matrix A, the rows about an upstream that is away while no prompt is submitted: what still works, and how
// it goes on when it is back.
import { randomBytes } from 'node:crypto';
import { FormData, fetch } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { finish, runsToCompletion, staysRunning } from '../support/upstreams/job-scripts.ts';
import { type Client, openOwnSetup, useSharedSetup } from './open.ts';

// An upload may take long.
const setup = useSharedSetup({ limits: { submitTimeoutMs: 6_000 } });

const theirs = (client: Client) => setup.upstream.of(client.key);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function disconnect(): Promise<() => Promise<void>> {
  await setup.proxy.down();
  onTestFinished(() => setup.proxy.up());
  return () => setup.proxy.up();
}

/** A prompt that runs until the test ends it. */
async function running(client: Client) {
  setup.upstream.script(staysRunning, client.key);
  const { promptId, marker } = await client.post();
  await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
  const [job] = client.jobs(marker);
  if (!job) throw new Error('no job');
  return { promptId, job, end: () => finish(setup.upstream, job) };
}

describe('an upstream that is not there', () => {
  test('F01 does not keep the process from starting and answering for itself; prompts run once it is back', async () => {
    const own = await openOwnSetup({ line: 'down' });
    const client = await own.client();
    for (const path of [
      '/system_stats',
      '/queue',
      '/history',
      '/prompt',
      '/features',
      '/embeddings',
      '/',
    ]) {
      expect([path, (await client.ask(path)).status]).toEqual([path, 200]);
    }
    // No answer has ever said which nodes it has.
    const unknown = await client.ask('/object_info');
    expect([unknown.status, unknown.headers.get('retry-after')]).toEqual([
      503,
      expect.stringMatching(/^\d+$/),
    ]);
    expect((await client.post()).status).toBe(502);
    await own.proxy.up();
    own.upstream.script(runsToCompletion());
    const { promptId } = await client.post();
    await client.ended(promptId);
    await own.check();
  });

  test('F14 while a prompt runs: the socket hears no error, and the run goes on to its end', async () => {
    const client = await setup.client();
    const { promptId, end } = await running(client);
    const back = await disconnect();
    await sleep(1_000);
    expect(client.socket.socket.readyState).toBe(client.socket.socket.OPEN);
    expect(client.outline(promptId)).not.toContain('execution_error');
    expect((await client.queue()).running).toEqual([promptId]);
    end();
    await back();
    expect((await client.ended(promptId, 5_000)).status.status_str).toBe('success');
    await client.socket.untilDone(promptId);
    expect(client.outline(promptId).slice(-3)).toEqual([
      'executed:9',
      'execution_success',
      'executing:null',
    ]);
  });

  test.each([
    ['/interrupt', (client: Client) => client.say('/interrupt')],
    ['/api/jobs/{id}/cancel', (client: Client, id: string) => client.say(`/api/jobs/${id}/cancel`)],
  ] as const)(
    'F15 %s is 200, shown as wanted, and carried out when it is back',
    async (_, stop) => {
      const client = await setup.client();
      const { promptId, job } = await running(client);
      const back = await disconnect();
      expect((await stop(client, promptId)).status).toBe(200);
      expect(await client.word(promptId)).toBe('cancel_requested');
      expect((await client.queue()).running).toEqual([promptId]);
      await back();
      await expect.poll(() => job.status, { timeout: 5_000 }).toBe('canceled');
      await client.ended(promptId);
      await client.socket.untilDone(promptId);
      expect(client.outline(promptId)).toContain('execution_interrupted');
      expect(await client.word(promptId)).toBe('cancelled');
    },
  );

  test('F15 a cancel that comes too late resolves to what really happened', async () => {
    const client = await setup.client();
    const { promptId, end } = await running(client);
    const back = await disconnect();
    await client.say('/interrupt');
    end();
    await back();
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(await client.word(promptId)).toBe('success');
  });

  test('F15 a cancel outlives the process', async () => {
    const client = await setup.client();
    const { promptId, job } = await running(client);
    const back = await disconnect();
    await client.say('/interrupt');
    await setup.restart();
    await back();
    await client.reconnect();
    await expect.poll(() => job.status, { timeout: 5_000 }).toBe('canceled');
    await client.ended(promptId);
    expect(await client.word(promptId)).toBe('cancelled');
  });
});

describe('F18 a job that is gone', () => {
  test('ends its prompt with an error that says so, and is not asked about again', async () => {
    const client = await setup.client();
    const { promptId, job } = await running(client);
    setup.upstream.jobs.delete(job.id);
    setup.proxy.cut('rst');
    const entry = await client.ended(promptId);
    expect(entry.status.status_str).toBe('error');
    await client.socket.untilDone(promptId);
    expect(client.outline(promptId)).toContain('execution_error');
    expect(await client.word(promptId)).toBe('lost');
    expect(await client.queue()).toEqual({ running: [], pending: [] });
    const asked = theirs(client).requests('get').length;
    await sleep(400);
    expect(theirs(client).requests('get').length).toBe(asked);
  });

  test('for a moment only, is not gone', async () => {
    const client = await setup.client();
    const { promptId, end } = await running(client);
    theirs(client).always('events', fault.refuse(404, 'not_found'));
    setup.proxy.cut('rst');
    theirs(client).once('get', fault.refuse(404, 'job_not_found'));
    await sleep(300);
    end();
    expect((await client.ended(promptId)).status.status_str).toBe('success');
  });
});

test('an upload over a slow line, that goes on, takes as long as it takes', async () => {
  const client = await setup.client();
  const bytes = randomBytes(700_000);
  setup.proxy.set('up', { bytesPerSecond: 350_000, sliceBytes: 8_192 });
  onTestFinished(() => setup.proxy.restore());
  const body = new FormData();
  body.append('image', new Blob([bytes]), 'a.png');
  expect((await client.ask('/upload/image', { method: 'POST', body })).status).toBe(200);
  setup.proxy.restore();
  const url = `${setup.holdover().url}/view?filename=a.png&type=input`;
  const seen = await fetch(url, { headers: client.headers });
  expect(Buffer.from(await seen.arrayBuffer())).toEqual(bytes);
});

test('I1 to I10 hold over all of it', () => setup.check());
