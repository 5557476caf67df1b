// One address, both APIs: a job submitted through one is listed, followed and cancelled through the other.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, formatOf, untilRunning } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { endless, flat, growing, lasting } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

/** The machine may be busy. */
const PATIENTLY = { timeout: 30_000 };
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ann = { 'X-API-Key': 'ann-key' };
const bob = { 'X-API-Key': 'bob-key' };

const post = (url: string, body: object, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });

describe.each(['embedded', 'remote'] as const)('%s', (upstream) => {
  let dataDir: string;
  let engine: Holdover | undefined;
  let holdover: Holdover;
  beforeAll(async () => {
    dataDir = await runFolder('both');
    engine = upstream === 'remote' ? await startHoldover({ upstream: 'embedded' }) : undefined;
    holdover = await start();
  });
  afterAll(async () => {
    await holdover?.dispose();
    await engine?.dispose();
  });
  const start = () =>
    startHoldover({
      upstream: 'embedded',
      dataDir,
      args: engine ? ['--upstream', engine.url] : [],
    });

  const idsIn = async (headers: Record<string, string>): Promise<string[]> => {
    const { queue_running: running, queue_pending: pending } = await getJson(
      `${holdover.url}/queue`,
      headers,
    );
    return [...running, ...pending].map((item: any) => item[1]);
  };
  const statusOf = async (id: string, headers: Record<string, string>) =>
    (await entryOf(holdover.url, id, headers))?.status.status_str;

  test('a prompt whose job was read through v2 when it was over is sent to no late socket', async () => {
    const cat = { 'X-API-Key': 'cat-key' };
    const send = async (clientId: string, color: number): Promise<string> => {
      const body = { prompt: flat({ color }), client_id: clientId };
      return (await postPrompt(holdover.url, body, { headers: cat })).body.prompt_id;
    };
    const [first, last] = [await send('first', 31), await send('last', 32)];
    const left = async () =>
      (await getJson(`${holdover.url}/prompt`, cat)).exec_info.queue_remaining;
    await expect.poll(left, PATIENTLY).toBe(0);
    // Twice: an answer that is passed through does not wait until it is noted.
    for (const _time of [1, 2]) {
      const job = await getJson(`${holdover.url}/api/v2/jobs/${last}`, cat);
      expect(job.status).toBe('succeeded');
    }
    const tab = await connect(holdover.wsUrl, { clientId: 'tab', query: 'token=cat-key' });
    const mine = await connect(holdover.wsUrl, { clientId: 'last', headers: cat });
    const other = await connect(holdover.wsUrl, { clientId: 'first', headers: cat });
    await other.untilDone(first);
    expect([...tab.outline(last), ...mine.outline(last)]).toEqual([]);
  });

  test('a job submitted through v2 is sent to the sockets of its user, and is in /history with its file', async () => {
    const sockets = await Promise.all([
      connect(holdover.wsUrl, { clientId: 'one', query: 'token=ann-key' }),
      connect(holdover.wsUrl, { clientId: 'two', query: 'token=ann-key' }),
      connect(holdover.wsUrl, { clientId: 'one', headers: ann }),
      connect(holdover.wsUrl, { clientId: 'one', query: 'token=bob-key' }),
      connect(holdover.wsUrl, { clientId: 'one', headers: bob }),
    ]);
    const [mine, other, local, ...bobs] = sockets;
    const workflow = growing({ seed: 21, steps: 6, prefix: 'by-v2' });
    const { status, body: job } = await v2Client(holdover.url, ann).submit(workflow);
    expect(status).toBe(201);
    for (const socket of [mine, other]) {
      await socket.untilDone(job.id);
      expect(socket.outline(job.id)).toEqual(
        expect.arrayContaining(['execution_start', 'executed:9', 'execution_success']),
      );
    }
    const heard = () => local.outline(job.id).map((name) => name.split(':', 1)[0]);
    const messages = () => new Set(heard().filter((name) => name !== 'binary'));
    await expect.poll(messages).toEqual(new Set(['progress_state', 'progress']));
    for (const socket of bobs) expect(socket.outline()).toEqual(['status:0']);

    const entry = await entryOf(holdover.url, job.id, ann);
    expect(entry.prompt[1]).toBe(job.id);
    expect(entry.prompt[2]).toEqual(workflow);
    expect(entry.prompt[4]).toEqual(['9']);
    const [image] = entry.outputs['9'].images;
    const query = new URLSearchParams(image);
    const seen = await fetch(`${holdover.url}/view?${query}`, { headers: ann });
    expect(await formatOf(await seen.arrayBuffer())).toBe('png 64x64');
    expect((await fetch(`${holdover.url}/view?${query}`, { headers: bob })).status).toBe(404);
    expect(await entryOf(holdover.url, job.id, bob)).toBeUndefined();
    await Promise.all(sockets.map((socket) => socket.close()));
  });

  test.each([
    ['POST /queue {delete}', (id: string) => post(`${holdover.url}/queue`, { delete: [id] }, ann)],
    ['POST …/cancel of v2', (id: string) => v2Client(holdover.url, ann).cancel(id)],
  ])('one that waits is in /queue of its user alone, and %s ends it', async (_how, end) => {
    const client = v2Client(holdover.url, ann);
    const { body: running } = await client.submit(endless({ seed: 31 }));
    expect(await untilRunning(holdover.url, ann)).toBe(running.id);
    const { body: waiting } = await client.submit(flat({ prefix: 'waits' }));
    await expect.poll(() => idsIn(ann), PATIENTLY).toEqual([running.id, waiting.id]);
    expect(await idsIn(bob)).toEqual([]);

    await post(`${holdover.url}/queue`, { delete: [waiting.id] }, bob);
    expect((await v2Client(holdover.url, bob).cancel(waiting.id)).status).toBe(404);
    expect(await idsIn(ann)).toEqual([running.id, waiting.id]);

    await end(waiting.id);
    await expect.poll(() => statusOf(waiting.id, ann), PATIENTLY).toBe('error');
    expect((await client.job(waiting.id)).body.status).toBe('canceled');
    await fetch(`${holdover.url}/interrupt`, { method: 'POST', headers: ann });
    await expect.poll(() => statusOf(running.id, ann), PATIENTLY).toBe('error');
    expect((await client.job(running.id)).body.status).toBe('canceled');
  });

  test('a job submitted through v1 is read, streamed and cancelled through v2 by its prompt_id', async () => {
    const client = v2Client(holdover.url, ann);
    const submitted = await postPrompt(
      holdover.url,
      { prompt: endless({ seed: 41 }) },
      { headers: ann },
    );
    const id = submitted.body.prompt_id;
    await untilRunning(holdover.url, ann);
    expect((await client.job(id)).body).toMatchObject({ id, status: 'running' });
    expect((await v2Client(holdover.url, bob).job(id)).status).toBe(404);
    expect(await v2Client(holdover.url, bob).events(id)).toBe('404');
    const stream = client.events(id);
    await client.cancel(id);
    expect((await stream).trimEnd().split('\n').at(-1)).toContain('"canceled"');
    await expect.poll(() => statusOf(id, ann), PATIENTLY).toBe('error');
  });

  test('a refused submission leaves nothing in /queue and /history', async () => {
    const before = await getJson(`${holdover.url}/history`, bob);
    const { status } = await v2Client(holdover.url, bob).submit({
      '1': { class_type: 'NoSuchClass', inputs: {} },
    });
    expect(status).toBe(422);
    expect(await idsIn(bob)).toEqual([]);
    expect(await getJson(`${holdover.url}/history`, bob)).toEqual(before);
  });

  test('numbers of v1 and v2 submissions go on from one another', async () => {
    const client = v2Client(holdover.url, bob);
    const first = await postPrompt(holdover.url, { prompt: flat({ color: 1 }) }, { headers: bob });
    const { body: job } = await client.submit(flat({ color: 2 }));
    const last = await postPrompt(holdover.url, { prompt: flat({ color: 3 }) }, { headers: bob });
    await expect.poll(() => statusOf(last.body.prompt_id, bob), PATIENTLY).toBe('success');
    const entry = await entryOf(holdover.url, job.id, bob);
    expect([entry.prompt[0], last.body.number]).toEqual([
      first.body.number + 1,
      first.body.number + 2,
    ]);
  });

  test('keys in extra_data are nowhere to be seen', async () => {
    const secret = 'comfyui-very-secret';
    const { body: job } = await v2Client(holdover.url, ann).submit(flat({ color: 0x222222 }), {
      extra_data: { api_key_comfy_org: secret },
    });
    await expect.poll(() => statusOf(job.id, ann), PATIENTLY).toBe('success');
    expect(JSON.stringify(await getJson(`${holdover.url}/history`, ann))).not.toContain(secret);
    expect(holdover.log()).not.toContain(secret);
  });

  test('a job answers v2 under the prompt_id its client chose, live and done', async () => {
    const dan = { 'X-API-Key': 'dan-key' };
    const client = v2Client(holdover.url, dan);
    const prompt = { prompt: endless({ seed: 61 }), prompt_id: 'mine' };
    await postPrompt(holdover.url, prompt, { headers: dan });
    await untilRunning(holdover.url, dan);
    const { status, body } = await client.job('mine');
    expect(status).toBe(200);
    expect(body.id).not.toBe('mine');
    expect((await client.job(body.id)).body.id).toBe(body.id);
    expect((await v2Client(holdover.url, bob).job('mine')).status).toBe(404);
    const stream = client.events('mine');
    expect((await client.cancel('mine')).status).toBe(200);
    expect(await stream).toContain('"canceled"');
    await expect.poll(() => entryOf(holdover.url, 'mine', dan), PATIENTLY).toBeDefined();
    expect((await client.job('mine')).body).toMatchObject({ id: body.id, status: 'canceled' });
  });

  test('a job submitted through v2 is still in the queue after kill -9, and ends in /history', async () => {
    const eve = { 'X-API-Key': 'eve-key' };
    const { body: job } = await v2Client(holdover.url, eve).submit(
      lasting({ seed: 51, prefix: 'survivor' }),
    );
    expect(await untilRunning(holdover.url, eve)).toBe(job.id);
    await holdover.kill9();
    holdover = await start();
    const { queue_running: running } = await getJson(`${holdover.url}/queue`, eve);
    expect(running[0][1]).toBe(job.id);
    const entry = () => entryOf(holdover.url, job.id, eve);
    await expect.poll(entry, { timeout: 40_000 }).toBeDefined();
    expect((await entry()).status.status_str).toBe('success');
    expect((await entry()).outputs['9'].images).toHaveLength(1);
  });
});
