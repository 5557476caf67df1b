// The data a caller may see of `/holdover/api`, and keys, which are never shown.
import { describe, expect, onTestFinished, test } from 'vitest';
import { startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import type { JobAnswer } from '../../src/console/api-types.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';

const SECRET = 'comfyui-0123456789abcdef-partner';
const INPUT_SECRET = 'sk-in-a-graph-0123456789';
/** Behind a proxy: such a caller is not the operator. */
const PROXIED = { 'X-Forwarded-For': '10.0.0.5' };

const server = useHoldover({ upstream: 'embedded' });

type Answer = { readonly status: number; readonly text: string; readonly json: any };

async function ask(
  path: string,
  { key = '', method = 'GET', headers = {} as Record<string, string> } = {},
): Promise<Answer> {
  const answer = await fetch(`${server.url}/holdover/api/${path}`, {
    method,
    headers: { ...headers, ...(key !== '' && { 'X-API-Key': key }) },
  });
  const text = await answer.text();
  return { status: answer.status, text, json: text === '' ? undefined : JSON.parse(text) };
}

async function submit(body: object, key: string): Promise<string> {
  const headers = { 'X-API-Key': key, 'User-Agent': 'the-client/1.0' };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  const answer = await fetch(`${server.url}/prompt?token=${key}`, init);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { prompt_id: string }).prompt_id;
}

/** Twice this is less than the ten seconds between two measurements. */
const PATIENCE = { timeout: 4_500 };

test('the figures of the server are those of now', async () => {
  const jobs = async () => {
    const { samples, limits } = (await ask('server')).json;
    const { queued, running } = samples.at(-1);
    const waiting = limits.find(({ flag }: { flag: string }) => flag === '--queue-limit');
    return { queued, running, waiting: waiting.used };
  };
  const key = 'key-of-figures';
  const [first, second] = [
    await submit({ prompt: endless() }, key),
    await submit({ prompt: flat({ color: 7 }) }, key),
  ];
  await expect.poll(jobs, PATIENCE).toEqual({ queued: 1, running: 1, waiting: 1 });
  for (const id of [second, first]) {
    await fetch(`${server.url}/api/jobs/${id}/cancel`, {
      method: 'POST',
      headers: { 'X-API-Key': key },
    });
  }
  await expect.poll(jobs, PATIENCE).toEqual({ queued: 0, running: 0, waiting: 0 });
});

describe('users', () => {
  test('see their own jobs, and no job of another', async () => {
    const mine = await submit({ prompt: flat({ color: 1 }), client_id: 'c1' }, 'key-of-one');
    const theirs = await submit({ prompt: flat({ color: 2 }), client_id: 'c2' }, 'key-of-two');
    const ids = async (key: string) =>
      (await ask('job-list', { key })).json.jobs.map(({ id }: { id: string }) => id);
    expect([await ids('key-of-one'), await ids('key-of-two')]).toEqual([[mine], [theirs]]);
    expect(await ids('')).toEqual([]);
    for (const path of ['job?id=', 'job/code?language=python&id=']) {
      expect((await ask(path + theirs, { key: 'key-of-one' })).status).toBe(404);
      expect((await ask(path + theirs, { key: 'key-of-two' })).status).toBe(200);
    }
  });

  test('see their own traffic; a recorded entry of another is not there', async () => {
    const entries = async (key: string, query = '') =>
      (await ask(`traffic${query}`, { key, headers: PROXIED })).json.entries as {
        id: number;
        kind: string;
        target?: string;
      }[];
    await entries('key-of-one');
    await entries('key-of-two');
    await submit({ prompt: flat({ color: 3 }) }, 'key-of-one');
    const ofOne = await entries('key-of-one');
    expect(ofOne.find(({ target }) => target?.startsWith('/prompt'))).toBeDefined();
    expect(await entries('key-of-two')).toEqual([]);
    expect(await entries('')).toEqual([]);
    const ofOther = `traffic/entry?id=${ofOne[0]?.id}&server=another`;
    const other = await ask(ofOther, { key: 'key-of-one', headers: PROXIED });
    expect([other.status, other.json.error.type]).toEqual([404, 'other_server']);
    for (const { id } of ofOne) {
      const detail = await ask(`traffic/entry?id=${id}`, { key: 'key-of-two', headers: PROXIED });
      expect(detail.status).toBe(404);
    }
  });

  test.each([
    'server',
    'traffic?scope=all',
    'traffic/entry?id=1&scope=all',
    'traffic/picture?id=1&scope=all',
    'clients?scope=all',
  ])('who are not the operator are refused %s', async (path) => {
    const { status, json } = await ask(path, { key: 'key-of-one', headers: PROXIED });
    expect([status, json.error.type]).toEqual([403, 'operator_only']);
    expect((await ask(path)).status).not.toBe(403);
  });

  test('cannot clear what others recorded', async () => {
    const options = { method: 'POST', headers: PROXIED };
    expect((await ask('traffic/clear', options)).status).toBe(403);
  });
});

describe('recorded traffic', () => {
  test('shows what a call became, and no secret of it', async () => {
    const key = 'a-key-that-must-not-show';
    await ask('traffic', { key });
    const headers = { 'X-API-Key': key };
    const socket = await connect(server.wsUrl, { clientId: 'watched', headers });
    const graph = {
      '1': { class_type: 'PreviewAny', inputs: { source: INPUT_SECRET } },
      '2': { class_type: 'PreviewAny', inputs: { source: SECRET } },
    };
    const extra_data = { api_key_comfy_org: SECRET, auth_token_comfy_org: INPUT_SECRET };
    const id = await submit({ prompt: graph, client_id: 'watched', extra_data }, key);
    await socket.untilDone(id);
    await socket.close();
    const { json, text } = await ask('traffic', { key });
    type Entry = { id: number; kind: string; cause_id: number; target?: string; type?: string };
    const entries = json.entries as Entry[];
    const post = entries.find(({ target }) => target?.startsWith('/prompt'));
    const became = entries.filter(({ cause_id: cause }) => cause === post?.id);
    expect(became.map(({ target }) => target)).toEqual(
      expect.arrayContaining(['/api/v2/jobs', '/api/v2/jobs/{id}/events']),
    );
    const end = entries.find(({ type }) => type === 'execution_success');
    const cause = entries.find(({ id: one }) => one === end?.cause_id);
    expect(cause).toMatchObject({ kind: 'v2_event', type: 'status', text: 'succeeded' });
    const texts = [text];
    for (const entry of entries)
      texts.push((await ask(`traffic/entry?id=${entry.id}`, { key })).text);
    const all = texts.join('\n');
    expect(all).toContain('PreviewAny');
    for (const secret of [key, SECRET, INPUT_SECRET]) expect(all).not.toContain(secret);
  });

  test('has the frames that no client of v1 sends, and the server goes on', async () => {
    const key = 'key-of-a-strange-client';
    await ask('traffic', { key });
    const socket = await connect(server.wsUrl, { headers: { 'X-API-Key': key } });
    onTestFinished(() => socket.close());
    const odd = { toString: 1, valueOf: 1 };
    const strange = [
      { node: odd },
      { max: odd, value: odd },
      { nodes: [odd] },
      { status: { exec_info: { queue_remaining: odd } } },
    ];
    for (const data of strange) socket.send({ type: 'strange', data });
    const shown = JSON.stringify(odd);
    const received = async () =>
      (await ask('traffic', { key })).json.entries
        .filter(({ direction }: { direction?: string }) => direction === 'in')
        .map(({ text }: { text: string }) => text);
    await expect
      .poll(received)
      .toEqual([
        `node ${shown}`,
        `${shown} of ${shown}`,
        `nodes ${shown}`,
        `queue_remaining ${shown}`,
      ]);
  });

  test('is shown whatever a caller takes for a key', async () => {
    for (const key of ['"kind"', 'v2_call', '{"entries"', '"text":']) {
      await ask('traffic', { key });
      await submit({ prompt: flat({ color: 5 }) }, key);
    }
    const { entries } = (await ask('traffic', { key: '"kind"' })).json;
    const kinds = entries.map(({ kind }: { kind: string }) => kind);
    expect(new Set(kinds)).toEqual(new Set(['call', 'v2_call', 'v2_event']));
    const { status, json } = await ask(`traffic/entry?id=${entries[0].id}`, { key: '"kind"' });
    expect([status, json.entry.kind]).toEqual([200, 'call']);
  });
});

test('a job says why it has not started, as long as it has not', async () => {
  const busy = await startHoldover({ upstream: 'embedded', args: ['--concurrency', '1'] });
  onTestFinished(() => busy.dispose());
  const jobOf = async (id: string) =>
    (await (await fetch(`${busy.url}/holdover/api/job?id=${id}`)).json()) as JobAnswer;
  const submitTo = async (prompt: object) =>
    (await postPrompt(busy.url, { prompt })).body.prompt_id as string;
  const first = await submitTo(endless());
  const second = await submitTo(flat());
  await expect.poll(async () => (await jobOf(first)).job.status).toBe('in_progress');
  expect((await jobOf(first)).pending).toBeNull();
  expect((await jobOf(second)).pending).toEqual({
    reason: 'workers_busy',
    text: 'The workers run other jobs, or are about to take it. Users take turns.',
    readyz_part: null,
  });
  await fetch(`${busy.url}/interrupt`, { method: 'POST' });
  await expect.poll(async () => (await jobOf(second)).job.status).toBe('completed');
  expect((await jobOf(second)).pending).toBeNull();
});

function longText(length: number): object {
  const source = { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(length) } };
  return { '1': source, '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } } };
}

test('a refused path, parameter or key says so', async () => {
  expect((await ask('nope')).status).toBe(404);
  expect((await ask('job-list?limit=0')).status).toBe(400);
  expect((await ask('job-list?status=done')).status).toBe(400);
  expect((await ask('job/code?language=cobol&id=x')).status).toBe(400);
  const id = await submit({ prompt: longText(2_500_000) }, '');
  const { status, json } = await ask(`job/code?language=python&id=${id}`);
  expect([status, json.error]).toMatchObject([
    413,
    { type: 'workflow_too_long', message: expect.stringContaining('2 million') },
  ]);
  const keyed = await startHoldover({ args: ['--local-token', 'token'], upstream: 'embedded' });
  const refused = await fetch(`${keyed.url}/holdover/api/session`);
  const headers = { 'X-API-Key': 'token', ...PROXIED };
  const accepted = await fetch(`${keyed.url}/holdover/api/session`, { headers });
  await keyed.dispose();
  expect(refused.status).toBe(401);
  expect(await accepted.json()).toMatchObject({ is_operator: true, needs_token: true });
});
