// Behaviour of real v2 servers that no contract describes, as a v1 client sees it. Every prompt has to
// end once, with what its job really made.
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type Hook,
  type JobScript,
  type WireJob,
  fault,
  frame,
  startSse,
} from '../support/upstreams/hostile-v2.ts';
import {
  finish,
  outputOf,
  preview,
  progressAt,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { growing } from '../support/graphs/workflows.ts';
import { type Client, expectWhole, useSharedSetup } from './open.ts';

const setup = useSharedSetup();

const theirs = (client: Client) => setup.upstream.of(client.key);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const RUNNING = frame('status', { status: 'running' });
const SUCCEEDED = frame('status', { status: 'succeeded' });
const jobOf = ({ server, id }: Parameters<Hook>[0]) => server.jobs.get(id) as WireJob;

async function run(client: Client, script?: JobScript): Promise<any> {
  if (script) setup.upstream.script(script, client.key);
  const { status, promptId } = await client.post();
  expect(status).toBe(200);
  return { promptId, entry: await expectWhole(client, promptId) };
}

describe('how a job ends', () => {
  test('expired for a moment, between two lists, is no end', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    theirs(client).always('events', fault.sse(RUNNING));
    const { promptId, marker } = await client.post();
    const [job] = client.jobs(marker) as [WireJob];
    await expect.poll(() => job.status).toBe('running');
    const expired: Hook = (exchange) =>
      exchange.json(200, { ...job, workflow: undefined, status: 'expired' });
    theirs(client).once('get', expired);
    await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
    await sleep(200);
    expect(client.outline(promptId)).not.toContain('execution_error');
    finish(setup.upstream, job);
    await expectWhole(client, promptId);
  });

  test('expired that stays is an end: an error, and status lost', async () => {
    const client = await setup.client();
    setup.upstream.script(
      async (job, server) => server.change(job.id, { status: 'expired' }),
      client.key,
    );
    const { promptId } = await client.post();
    expect((await client.ended(promptId)).status.status_str).toBe('error');
    expect(await client.word(promptId)).toBe('lost');
  });

  test('fields that only look like those of another Holdover do not keep it from its end', async () => {
    const client = await setup.client();
    await run(client, async (job, server) => {
      server.change(job.id, { x_ui: { 9: 'text' }, x_cached_nodes: 'all' });
      await runsToCompletion()(job, server);
    });
  });

  test('expired after a cancel is cancelled', async () => {
    const client = await setup.client();
    setup.upstream.script(async () => {}, client.key);
    theirs(client).always('cancel', (exchange) => {
      exchange.server.change(exchange.id, { status: 'expired' });
      exchange.json(200, { ...jobOf(exchange), workflow: undefined });
    });
    const { promptId } = await client.post();
    await client.say('/api/queue', { delete: [promptId] });
    await client.ended(promptId);
    expect(await client.word(promptId)).toBe('cancelled');
    await client.socket.untilDone(promptId);
    expect(client.outline(promptId)).toContain('execution_interrupted');
  });

  test('canceling for a while is no end', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    theirs(client).always('cancel', (exchange) => {
      exchange.server.change(exchange.id, { status: 'canceling' });
      exchange.json(200, { ...jobOf(exchange), workflow: undefined });
    });
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
    await client.say('/interrupt');
    await sleep(200);
    expect(await client.word(promptId)).toBe('cancel_requested');
    expect(await client.history(promptId)).toBeUndefined();
    setup.upstream.change(client.jobs(marker)[0]?.id ?? '', { status: 'canceled' });
    await client.ended(promptId);
    expect(await client.word(promptId)).toBe('cancelled');
  });

  test('canceled without a request is an interruption', async () => {
    const client = await setup.client();
    setup.upstream.script(async (job, server) => {
      await staysRunning(job, server);
      server.change(job.id, { status: 'canceled' });
    }, client.key);
    const { promptId } = await client.post();
    await client.ended(promptId);
    await client.socket.untilDone(promptId);
    expect(client.outline(promptId)).toContain('execution_interrupted');
  });

  test('a terminal status before the outputs: all of them are in history', async () => {
    const client = await setup.client();
    theirs(client).always('events', async (exchange) => {
      const job = jobOf(exchange);
      const made = [outputOf(job), outputOf(job, { node_id: '1', name: 'other.png' })];
      exchange.server.change(job.id, { outputs: made, status: 'succeeded' });
      const outputs = made.map((one) => frame('output', one)).join('');
      await fault.sse(RUNNING + SUCCEEDED + outputs)(exchange);
    });
    const { entry, promptId } = await run(client, staysRunning);
    expect(Object.keys(entry.outputs).toSorted()).toEqual(['1', '9']);
    expect(
      client
        .outline(promptId)
        .filter((name) => name.startsWith('executed:'))
        .toSorted(),
    ).toEqual(['executed:1', 'executed:9']);
  });

  test('a stream that ends on an error event: the job is asked, and may go on', async () => {
    const client = await setup.client();
    theirs(client).once('events', fault.sse(RUNNING + frame('error', { code: 'x', message: 'y' })));
    const { promptId } = await run(client, runsToCompletion({ waitMs: 150 }));
    expect(client.outline(promptId)).not.toContain('execution_error');
  });
});

describe('how a job goes on', () => {
  test.each([
    ['null', null],
    ['zeros', { value: 0, nodes_done: 0, nodes_total: 0 }],
    ['absent', undefined],
  ])(
    'progress that is %s on every read hides nothing of what the stream says',
    async (_, progress) => {
      const client = await setup.client();
      theirs(client).always('get', (exchange) => {
        // A server that does not know a prompt yet asks for a job with its id.
        if (!exchange.server.jobs.has(exchange.id)) return exchange.honestly();
        const { workflow: _workflow, ...job } = jobOf(exchange);
        exchange.json(200, { ...job, progress });
      });
      const { promptId } = await run(client, runsToCompletion({ waitMs: 80, pauseMs: 20 }));
      expect(client.outline(promptId)).toContain('progress:3/3');
    },
  );

  test('never running, never a queue position: work shows that it runs', async () => {
    const client = await setup.client();
    setup.upstream.script(async () => {}, client.key);
    theirs(client).always('events', async ({ res }) => {
      startSse(res);
      res.write(frame('status', { status: 'queued' }) + frame('progress', progressAt(1, 2)));
    });
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.word(promptId)).toBe('executing');
    expect((await client.queue()).running).toEqual([promptId]);
    finish(setup.upstream, client.jobs(marker)[0] as WireJob);
    await expectWhole(client, promptId);
  });

  test('previews without a node, or a PNG, are previews', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    const more = { extra_data: { preview_method: 'auto' } };
    const { promptId, marker } = await client.post({ more });
    // A stream that is opened when the job is over has no previews.
    await expect.poll(() => theirs(client).requests('events').length).toBe(1);
    const [job] = client.jobs(marker) as [WireJob];
    setup.upstream.emit(job.id, 'progress', progressAt(1, 2));
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);
    const odd = { ...preview(png), node_id: '', content_type: 'image/png' };
    setup.upstream.emit(job.id, 'preview', odd);
    await expect.poll(() => client.socket.frames.some((f) => f.kind === 'binary')).toBe(true);
    finish(setup.upstream, job);
    await expectWhole(client, promptId);
  });

  test('two sockets and three pollers share the one stream of a job', async () => {
    const client = await setup.client();
    await client.reconnect();
    const { promptId } = await run(client, runsToCompletion({ waitMs: 100, pauseMs: 30 }));
    await Promise.all([client.word(promptId), client.queue(), client.history(promptId)]);
    expect(theirs(client).requests('events')).toHaveLength(1);
  });
});

describe('what things are called', () => {
  test.each([
    ['eyJmIjoiYS5wbmcifQ.c2lnbmF0dXJl_-~', 'an id that is signed'],
    ['a b/c?d=1#e', 'an id with everything in it'],
    ['ü'.repeat(20), 'an id that is no ASCII'],
    ['x'.repeat(280), 'a long id'],
  ])('%s as the id of a job and of its output', async (id) => {
    const client = await setup.client();
    theirs(client).once('submit', (exchange) => {
      const {
        workflow: _,
        key: _k,
        account: _a,
        ...job
      } = exchange.server.makeJob(exchange, { id: id + client.key.slice(0, 8) });
      exchange.json(201, job);
    });
    const outId = `${id}-${randomUUID()}`;
    setup.upstream.script(async (job, server) => {
      await sleep(20);
      finish(server, job, { id: outId });
    }, client.key);
    const { entry, promptId } = await run(client);
    // v1 clients put it into paths as it is.
    expect(encodeURIComponent(promptId)).toBe(promptId);
    expect(await client.word(theirs(client).jobs()[0]?.id ?? '')).toBe('success');
    const { status, text } = await client.ask(
      `/view?${new URLSearchParams(entry.outputs['9'].images[0])}`,
    );
    expect([status, text]).toEqual([200, '0123456789']);
  });
});

test('what browsers send along stays here', async () => {
  const client = await setup.client();
  const { origin } = new URL(setup.holdover().url);
  const body = JSON.stringify({
    prompt: growing({ prefix: 'browser', steps: 1 }),
    client_id: client.clientId,
  });
  const sent = {
    'Content-Type': 'application/json',
    Cookie: 'session=1',
    Origin: origin,
    Referer: `${origin}/`,
    'Sec-Fetch-Site': 'same-origin',
  };
  const { json } = await client.ask('/prompt', { method: 'POST', body, headers: sent });
  await client.ended(json.prompt_id);
  for (const { headers } of theirs(client).requests('submit')) {
    for (const name of ['cookie', 'origin', 'referer', 'sec-fetch-site', 'x-api-key']) {
      expect([name, headers[name]]).toEqual([name, undefined]);
    }
  }
});

test.each([null, 1e99, 'yesterday', '0001-01-01T00:00:00Z'])(
  'F65 %j as every time of a job is no obstacle, and no NaN for anybody',
  async (time) => {
    const client = await setup.client();
    const times = { created_at: time, started_at: time, completed_at: time, expires_at: time };
    setup.upstream.script(async (job, server) => {
      Object.assign(job, times);
      await runsToCompletion()(job, server);
      Object.assign(job, times);
    }, client.key);
    const { promptId } = await client.post();
    await client.ended(promptId);
    const paths = ['/history', '/api/history_v2', '/api/jobs', `/api/job/${promptId}/status`];
    for (const path of paths) {
      const { text } = await client.ask(path);
      expect([path, text]).not.toEqual([path, expect.stringMatching(/NaN|Infinity|Invalid/)]);
    }
    const numbers = JSON.stringify(await client.history(promptId)).matchAll(
      /"timestamp":([^,}]+)/g,
    );
    for (const [, number] of numbers) expect(Number(number)).toBeGreaterThan(1e12);
  },
);

test('I1 to I10 hold over all of it', () => setup.check());
