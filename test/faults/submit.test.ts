// Matrix A, the rows about handing a prompt over: what its sender is told, and that it runs once.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { FormData } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Hook, error, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf } from '../support/processes/invariants.ts';
import { type Client, openOwnSetup, useSharedSetup } from './open.ts';

/** It reads the records of files that a refused prompt names. */
const setup = useSharedSetup({ args: ['--upstream-assets', 'object'] });

const theirs = (client: Client) => setup.upstream.of(client.key);
const keysOf = (client: Client) => theirs(client).requests('submit').map(keyOf);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('never sent', () => {
  test('F03 a refused connection is 502 upstream_unavailable, and the prompt is nowhere', async () => {
    const client = await setup.client();
    await setup.proxy.down();
    const answer = await client.post();
    await setup.proxy.up();
    expect(answer.status).toBe(502);
    expect(answer.json).toMatchObject({ error: { type: 'upstream_unavailable' }, node_errors: {} });
    expect(await client.queue()).toEqual({ running: [], pending: [] });
    expect(Object.keys((await client.ask('/history')).json)).toEqual([]);
    expect(theirs(client).requests('submit')).toEqual([]);
    const { promptId } = await client.post();
    await client.ended(promptId);
  });

  test('F05 a connection reset before the request was read: the prompt runs, once', async () => {
    const client = await setup.client();
    setup.proxy.cut('rst');
    setup.proxy.set('up', { limit: { bytes: 0, end: 'rst' } });
    setTimeout(() => setup.proxy.restore(), 15);
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(200);
    await client.ended(promptId);
    expect(client.jobs(marker)).toHaveLength(1);
  });
});

test('F04 a peer that takes no connection is 502 within the connect time-out', async () => {
  const nowhere = await openOwnSetup({
    upstreamUrl: await silentPort(),
    args: ['--object-info', 'embedded'],
    limits: { connectTimeoutMs: 200, discoverTimeoutMs: 300 },
  });
  const client = await nowhere.client();
  const { status, json } = await client.post();
  expect([status, json.error.type]).toEqual([502, 'upstream_unavailable']);
  expect(await client.queue()).toEqual({ running: [], pending: [] });
});

/** A listener that is too busy to accept: once its backlog is full, handshakes are not answered. */
async function silentPort(): Promise<string> {
  const code = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    require('fs').writeSync(1, String(this.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const fillers = Array.from({ length: 8 }, () => connectSocket(Number(port), '127.0.0.1'));
  for (const filler of fillers) filler.on('error', () => {});
  onTestFinished(() => {
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
  });
  await sleep(50);
  return `http://127.0.0.1:${String(port)}`;
}

/** Ways to die after the request was there; all of them: test/remote/driver/submit.test.ts. */
const DEATHS: readonly (readonly [string, Hook])[] = [
  ['F06 a reset', fault.reset()],
  ['F06 silence', fault.hang()],
  ['F07 500', fault.refuse(500, 'upstream_error')],
  ['F08 201 cut off in its middle', fault.cut(40, { id: 'x'.repeat(200) })],
];

const twoOutputs = (prefix: string) => ({
  '3': { class_type: 'LoadImage', inputs: { image: 'm.png' } },
  '8': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: prefix } },
  '9': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: prefix } },
});
const BAD_8: Hook = ({ json }) => {
  const details = { node_errors: { '8': [{ field: 'images', reason: 'bad' }] } };
  json(422, error('invalid_workflow', 'bad', details));
};

async function upload(client: Client): Promise<void> {
  const body = new FormData();
  body.set('image', new Blob([Buffer.from('abcdef')]), 'm.png');
  expect((await client.ask('/upload/image', { method: 'POST', body })).status).toBe(200);
}

describe('an unknown outcome', () => {
  test.each(DEATHS)(
    '%s, and the job is there: its prompt is accepted and runs',
    async (_, last) => {
      const client = await setup.client();
      theirs(client).once('submit', fault.claimAndDie({ withJob: true, last }));
      const { status, promptId, marker } = await client.post();
      expect(status).toBe(200);
      expect((await client.ended(promptId)).status.status_str).toBe('success');
      expect(client.jobs(marker)).toHaveLength(1);
      expect(new Set(keysOf(client)).size).toBe(1);
    },
  );

  test.each(DEATHS)('%s, and nothing was done: the same key goes through', async (_, last) => {
    const client = await setup.client();
    theirs(client).once('submit', last);
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(200);
    await client.ended(promptId);
    expect(client.jobs(marker)).toHaveLength(1);
    expect(new Set(keysOf(client)).size).toBe(1);
  });

  test.each(DEATHS)(
    '%s, the key is used up and no job to be seen: 500, pending as submitted, in the end lost',
    async (_, last) => {
      const client = await setup.client();
      theirs(client).once('submit', fault.claimAndDie({ withJob: false, last }));
      const { status, json, promptId } = await client.post();
      expect([status, json.error.type]).toEqual([500, 'submit_outcome_unknown']);
      expect(json.node_errors).toEqual({});
      expect((await client.queue()).pending.concat((await client.queue()).running)).toEqual([
        promptId,
      ]);
      expect(await client.word(promptId)).toBe('submitted');
      const entry = await client.ended(promptId);
      expect(entry.status.status_str).toBe('error');
      expect(JSON.stringify(entry.status.messages)).toMatch(/unknown|lost/i);
      expect(await client.word(promptId)).toBe('lost');
      await client.socket.untilDone(promptId);
      expect(client.outline(promptId)).toContain('execution_error');
      expect(new Set(keysOf(client)).size).toBe(1);
    },
  );

  test('F06 a job that shows up in the list later is the prompt’s, which then runs like any other', async () => {
    const client = await setup.client();
    const seen = theirs(client);
    seen.once('submit', fault.claimAndDie({ withJob: true }));
    seen.always('list', fault.refuse(503, 'upstream_unreachable'));
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(500);
    expect(await client.word(promptId)).toBe('submitted');
    seen.always('list', (exchange) => exchange.honestly());
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    await client.socket.untilDone(promptId);
    expect(client.jobs(marker)).toHaveLength(1);
    expect(await client.word(promptId)).toBe('success');
  });

  test('F06 without a list the prompt ends as lost, and is never sent under another key', async () => {
    const client = await setup.client();
    const seen = theirs(client);
    seen.always('list', fault.refuse(501, 'not_implemented'));
    seen.once('submit', fault.claimAndDie({ withJob: true }));
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(500);
    await client.ended(promptId);
    expect(await client.word(promptId)).toBe('lost');
    expect(client.jobs(marker)).toHaveLength(1);
    expect(new Set(keysOf(client)).size).toBe(1);
  });

  describe.each([
    ['a missing file', fault.refuse(422, 'missing_asset')],
    ['one bad output', BAD_8],
  ] as const)('F06 a reset, then a refusal for %s', (_, refusal) => {
    /** Posts a prompt with two outputs and a file to a service that has its job. */
    async function post(list: Hook) {
      const client = await setup.client();
      await upload(client);
      const service = theirs(client);
      service.once('submit', fault.claimAndDie({ withJob: true }), refusal);
      service.always('list', list);
      // To renew the files of a refused prompt, Holdover would read their records.
      service.always('asset', fault.refuse(404, 'asset_not_found'));
      const marker = randomUUID();
      const answer = await client.post({ marker, prompt: twoOutputs(marker) });
      return { client, answer, submits: service.requests('submit') };
    }

    test('no second key, one job', async () => {
      const { client, answer, submits } = await post((exchange) => exchange.honestly());
      expect(answer.status).toBe(200);
      await client.ended(answer.promptId);
      expect(client.jobs(answer.marker)).toHaveLength(1);
      expect(new Set(submits.map(keyOf)).size).toBe(1);
    });

    test('and no list to look in: still no second key', async () => {
      const { client, answer, submits } = await post(fault.refuse(501, 'not_implemented'));
      expect(answer.status).toBe(400);
      expect(client.jobs(answer.marker)).toHaveLength(1);
      expect(submits).toHaveLength(2);
    });
  });

  test('F19 an answer that comes too late: the job is the prompt’s all the same, once', async () => {
    const client = await setup.client();
    theirs(client).once('submit', fault.late(900));
    const { promptId, marker } = await client.post();
    expect(promptId).toBeDefined();
    await client.ended(promptId);
    await expect.poll(() => client.jobs(marker).length).toBe(1);
    await sleep(100);
    expect(client.jobs(marker)).toHaveLength(1);
    expect(new Set(keysOf(client)).size).toBe(1);
  });
});

describe('refused', () => {
  test('F09 a login page with 200 is 502, and none of it is repeated', async () => {
    const client = await setup.client();
    theirs(client).once('submit', fault.html());
    const { status, json, text } = await client.post();
    expect([status, json.error.type]).toEqual([502, 'bad_upstream_response']);
    expect(text).not.toMatch(/log in|html/);
    expect(theirs(client).requests('submit')).toHaveLength(1);
  });

  test('F10 a key that is revoked: 401 to the prompt, watching pauses, and goes on when it is good again', async () => {
    const client = await setup.client();
    const seen = theirs(client);
    setup.upstream.script(async () => {}, client.key);
    const { promptId, marker } = await client.post();
    const [job] = client.jobs(marker);
    const revoked = fault.refuse(401, 'unauthorized');
    for (const route of ['get', 'events', 'submit', 'list', 'cancel'] as const)
      seen.always(route, revoked);
    setup.proxy.cut('rst');
    await sleep(200);
    const before = seen.requests('get').length + seen.requests('events').length;
    const sinceMs = performance.now();
    await sleep(900);
    const asked = seen.requests('get').length + seen.requests('events').length - before;
    // One question in 400 ms, by the first who asks.
    expect(asked).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - sinceMs) / 400));
    const refused = await client.post();
    expect(refused.status).toBe(401);
    expect(refused.json.error).toBeDefined();
    for (const route of ['get', 'events', 'submit', 'list', 'cancel'] as const) {
      seen.always(route, (exchange) => exchange.honestly());
    }
    setup.upstream.change(job?.id ?? '', { status: 'succeeded' });
    expect((await client.ended(promptId)).status.status_str).toBe('success');
  });

  test.each([
    ['as the contract writes them', { '9': [{ field: 'filename_prefix', reason: 'is too long' }] }],
    [
      'as the engine writes them',
      {
        '9': {
          errors: [
            {
              type: 'value_not_in_list',
              message: 'Value not in list',
              details: 'filename_prefix: is too long',
              extra_info: { input_name: 'filename_prefix' },
            },
          ],
          dependent_outputs: ['9'],
          class_type: 'SaveImage',
        },
      },
    ],
  ])('F12 node errors %s are v1’s node_errors', async (_, nodeErrors) => {
    const client = await setup.client();
    const details = { node_errors: nodeErrors };
    theirs(client).once('submit', ({ json }) =>
      json(422, error('invalid_workflow', 'bad', details)),
    );
    const { status, json } = await client.post();
    expect(status).toBe(400);
    expect(json.error).toMatchObject({
      type: 'prompt_outputs_failed_validation',
      message: expect.any(String),
      details: expect.any(String),
      extra_info: expect.any(Object),
    });
    expect(json.node_errors).toEqual({
      '9': {
        class_type: 'SaveImage',
        dependent_outputs: ['9'],
        errors: [
          {
            type: expect.any(String),
            message: expect.any(String),
            details: expect.stringContaining('is too long'),
            extra_info: expect.objectContaining({ input_name: 'filename_prefix' }),
          },
        ],
      },
    });
  });
});

test('I1 to I10 hold over all of it', () => setup.check());
