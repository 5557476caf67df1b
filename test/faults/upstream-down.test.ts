// Matrix A, the rows about an upstream that is away while no prompt is submitted: what still works, and how
// it goes on when it is back.
import { describe, expect, onTestFinished, test } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { fault } from '../support/upstreams/hostile-v2.ts';
import {
  finish,
  outputOf,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { type Client, type FaultSetup, openOwnSetup, useSharedSetup } from './open.ts';

let setup: FaultSetup;
useSharedSetup((opened) => (setup = opened));

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
    const own = await openOwnSetup();
    await own.proxy.down();
    await own.restart();
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

  test('F02 does not keep /object_info from being answered, and is not asked for it by each caller', async () => {
    const own = await openOwnSetup();
    own.upstream.always('objectInfo', ({ json }) => json(200, OBJECT_INFO));
    await own.restart();
    const client = await own.client();
    await expect
      .poll(async () => Object.keys((await client.ask('/object_info')).json))
      .toEqual(['OnlyHere']);
    await own.proxy.down();
    const asked = own.upstream.requests('objectInfo').length;
    const accepted = own.proxy.accepted();
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.ask('/object_info')));
    for (const { status, json } of answers)
      expect([status, Object.keys(json)]).toEqual([200, ['OnlyHere']]);
    expect(own.upstream.requests('objectInfo').length).toBe(asked);
    expect(own.proxy.accepted() - accepted).toBe(0);
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
    [
      '/interrupt of one',
      (client: Client, id: string) => client.say('/interrupt', { prompt_id: id }),
    ],
    [
      '/api/queue delete',
      (client: Client, id: string) => client.say('/api/queue', { delete: [id] }),
    ],
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
    const own = await openOwnSetup();
    own.upstream.script(staysRunning);
    const client = await own.client();
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
    await own.proxy.down();
    await client.say('/interrupt');
    await own.restart();
    await own.proxy.up();
    await client.reconnect();
    await expect.poll(() => client.jobs(marker)[0]?.status, { timeout: 5_000 }).toBe('canceled');
    await client.ended(promptId);
    expect(await client.word(promptId)).toBe('cancelled');
  });
});

describe('files', () => {
  /** A prompt's picture, with so many bytes. */
  async function picture(client: Client, bytes: Buffer) {
    setup.upstream.script(async (job, server) => {
      const made = outputOf(job, { size_bytes: bytes.length }) as { id: string };
      server.contents.set(made.id, bytes);
      server.emit(job.id, 'output', made);
      server.change(job.id, { outputs: [made], status: 'succeeded' });
    }, client.key);
    const { promptId } = await client.post();
    const entry = await client.ended(promptId);
    const [file] = entry.outputs['9'].images;
    return `/view?${new URLSearchParams(file)}`;
  }

  test('F16 /view before anything came is 502, and the picture is there when it is back', async () => {
    const client = await setup.client();
    const bytes = Buffer.alloc(5_000, 7);
    const path = await picture(client, bytes);
    const back = await disconnect();
    expect((await client.ask(path)).status).toBe(502);
    await back();
    expect((await client.ask(path)).text.length).toBe(5_000);
  });

  test.each(['rst', 'fin'] as const)(
    'F16 /view cut off (%s) in the middle is no short picture but a broken connection',
    async (how) => {
      const client = await setup.client();
      const bytes = Buffer.alloc(400_000, 7);
      const path = await picture(client, bytes);
      setup.proxy.cut('rst');
      setup.proxy.set('down', { limit: { bytes: 150_000, end: how } });
      onTestFinished(() => setup.proxy.restore());
      await expect(client.ask(path)).rejects.toThrow();
      setup.proxy.restore();
      expect((await client.ask(path)).text.length).toBe(400_000);
    },
  );

  test('F17 an upload is refused, leaves nothing, and its name still shows what it showed', async () => {
    const client = await setup.client();
    const [first, second] = [
      await pngOf({ r: 1, g: 2, b: 3 }),
      await pngOf({ r: 200, g: 2, b: 3 }),
    ];
    const file = { name: 'kept.png', fields: { overwrite: 'true' } };
    const kept = await uploadInput(setup.holdover().url, { ...file, bytes: first }, client.headers);
    expect(kept.name).toBe('kept.png');
    const back = await disconnect();
    const refused = await upload(client, second);
    expect(refused.status).toBe(502);
    await back();
    const shown = await fetch(`${setup.holdover().url}/view?filename=kept.png&type=input`, {
      headers: client.headers,
    });
    expect(Buffer.from(await shown.arrayBuffer()).equals(first)).toBe(true);
  });

  async function upload(client: Client, bytes: Buffer): Promise<Response> {
    const form = new FormData();
    form.append('overwrite', 'true');
    form.append('image', new Blob([Buffer.from(bytes)]), 'kept.png');
    return fetch(`${setup.holdover().url}/upload/image`, {
      method: 'POST',
      body: form,
      headers: client.headers,
    });
  }
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

const OBJECT_INFO = {
  OnlyHere: {
    input: { required: {} },
    input_order: { required: [] },
    output: [],
    output_is_list: [],
    output_name: [],
    name: 'OnlyHere',
    display_name: 'Only here',
    description: '',
    python_module: 'nodes',
    category: 'test',
    output_node: true,
  },
};

test('I1 to I10 hold over all of it', () => setup.check());
