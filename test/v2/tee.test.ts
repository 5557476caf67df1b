// In front of a service that says odd things: what becomes of jobs that are submitted through /api/v2.
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { type Hook } from '../support/upstreams/hostile-v2.ts';
import { usePair } from '../support/processes/holdover-before-hostile.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { flat } from '../support/graphs/workflows.ts';

/** The machine may be busy. */
const PATIENTLY = { timeout: 30_000 };
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const pair = usePair();

const queued = async () =>
  (await getJson(`${pair.holdover.url}/queue`)).queue_running.concat(
    (await getJson(`${pair.holdover.url}/queue`)).queue_pending,
  );
const graphOf = async (id: string) => (await queued()).find((item: any) => item[1] === id)?.[2];
const clear = async () => {
  for (const id of pair.upstream.jobs.keys()) pair.upstream.change(id, { status: 'canceled' });
  await expect.poll(queued, { timeout: 30_000 }).toEqual([]);
};

const urls = (id: string) => ({ self: `/api/v2/jobs/${id}`, events: '', cancel: '' });
const answering = (body: Buffer | string, headers: Record<string, string> = {}): Hook => {
  return ({ res }) =>
    res.writeHead(201, { 'Content-Type': 'application/json', ...headers }).end(body);
};

describe('a job of which not everything could be read', () => {
  test('its workflow is asked for when it was too long to keep a copy of', async () => {
    const long = flat({ prefix: 'x'.repeat(5 * 1024 * 1024) });
    const { body: job } = await v2Client(pair.holdover.url).submit(long);
    await expect.poll(() => graphOf(job.id), { timeout: 30_000 }).toEqual(long);
    await clear();
  });

  test('its answer may come compressed; the client gets it as it came', async () => {
    const { body: job } = await v2Client(pair.holdover.url).submit(flat());
    const text = JSON.stringify({ ...pair.upstream.jobs.get(job.id), urls: urls(job.id) });
    await clear();
    const other = { ...JSON.parse(text), id: 'squeezed', status: 'queued', urls: urls('squeezed') };
    pair.upstream.jobs.set('squeezed', other);
    pair.upstream.once(
      'submit',
      answering(gzipSync(JSON.stringify(other)), { 'Content-Encoding': 'gzip' }),
    );
    const answer = await v2Client(pair.holdover.url).submit(flat());
    expect(answer.body).toEqual(other);
    await expect.poll(() => graphOf('squeezed'), PATIENTLY).toEqual(flat());
    await clear();
  });

  test('its answer may be too long to keep a copy of', async () => {
    const { body: job } = await v2Client(pair.holdover.url).submit(flat());
    const known = pair.upstream.jobs.get(job.id)!;
    await clear();
    pair.upstream.jobs.set('long', { ...known, id: 'long', status: 'queued' });
    const long = { id: 'long', urls: urls('long'), more: 'x'.repeat(6_000_000) };
    pair.upstream.once('submit', answering(JSON.stringify(long)));
    await v2Client(pair.holdover.url).submit(flat());
    await expect.poll(() => graphOf('long'), PATIENTLY).toEqual(flat());
    await clear();
  });

  test('the same job answered twice is one prompt', async () => {
    const { body: job } = await v2Client(pair.holdover.url).submit(flat());
    const again = answering(JSON.stringify({ ...job, urls: urls(job.id) }));
    pair.upstream.once('submit', again, again);
    await Promise.all([1, 2].map(() => v2Client(pair.holdover.url).submit(flat())));
    expect((await queued()).map((item: any) => item[1])).toEqual([job.id]);
    await clear();
    expect(await entryOf(pair.holdover.url, job.id)).toBeDefined();
    pair.upstream.once('submit', again);
    await v2Client(pair.holdover.url).submit(flat());
    expect(await queued()).toEqual([]);
  });

  test.each([
    ['no object', '[]'],
    ['no id', JSON.stringify({ urls: urls('x') })],
    ['an id that is none', JSON.stringify({ id: 7, urls: urls('x') })],
    ['no links', JSON.stringify({ id: 'nolinks' })],
    ['an id after megabytes', JSON.stringify({ more: 'x'.repeat(6_000_000), id: 'long' })],
  ])('an answer with %s goes to the client and becomes no prompt', async (_what, text) => {
    pair.upstream.once('submit', answering(text));
    const { status, body } = await v2Client(pair.holdover.url).submit(flat());
    expect([status, JSON.stringify(body)]).toEqual([201, text]);
    expect(await queued()).toEqual([]);
  });

  test('a workflow that is no graph of nodes is shown without nodes, and runs', async () => {
    const { body: job } = await v2Client(pair.holdover.url).submit({ nodes: [], links: [] });
    await expect.poll(() => graphOf(job.id), PATIENTLY).toEqual({});
    await clear();
  });
});

test('a job cancelled through v2 that the service then forgets is cancelled for v1, not lost', async () => {
  const client = v2Client(pair.holdover.url);
  const { body: job } = await client.submit(flat());
  await expect.poll(queued, PATIENTLY).toHaveLength(1);
  await client.cancel(job.id);
  pair.upstream.jobs.delete(job.id);
  const words = async () =>
    (await entryOf(pair.holdover.url, job.id))?.status.messages.map(([type]: [string]) => type);
  await expect.poll(words, { timeout: 30_000 }).toContain('execution_interrupted');
});
