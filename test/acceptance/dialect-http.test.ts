// Every rule of src/dialects/dialect.ts that a call of HTTP shows: told by its form, and forced.
import { describe, expect, test, vi } from 'vitest';
import type { Dialect } from '../../src/dialects/dialect.ts';
import { call } from '../support/clients/raw-call.ts';
import { interrupt, pngOf, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import { errorSummary } from '../support/golden/error-summary.ts';
import { REFUSED_CALLS } from '../support/clients/hostile-calls.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { say, upgradeText } from '../support/clients/raw-socket.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, loading } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
/** A busy machine is slow, not wrong. */
const PATIENCE = { timeout: 30_000 };

/** The same user in both forms: an empty key is no identity. */
const FORMS = {
  local: { Authorization: 'Bearer ' },
  hosted: { 'X-API-Key': '' },
} as const satisfies Record<Dialect, Record<string, string>>;

const server = useHoldover();

describe.each(['local', 'hosted'] as const)('a call in %s form', (dialect) => {
  const headers = FORMS[dialect];
  const isHosted = dialect === 'hosted';
  const url = () => server.url;
  const get = (path: string, more = {}) => call(url(), path, { headers: { ...headers, ...more } });
  const post = (path: string, body: object) =>
    call(url(), path, { method: 'POST', headers, body: JSON.stringify(body) });
  const running = async () => {
    const { body } = await postPrompt(url(), { prompt: endless() });
    await untilRunning(url());
    return body.prompt_id as string;
  };

  test('apiErrors: each refusal has the body its server has for it', async () => {
    const found = [];
    for (const [{ method, path, headers: own, body }] of REFUSED_CALLS) {
      const all = { ...headers, ...own };
      const answer = await call(url(), path, {
        method,
        headers: all,
        ...(body !== undefined && { body }),
      });
      found.push([method, path, errorSummary(answer)]);
    }
    const expected = REFUSED_CALLS.map(([{ method, path }, local, hosted]) => {
      return [method, path, isHosted ? hosted : local];
    });
    expect(found).toEqual(expected);
  });

  test('apiErrors: a refused upgrade too, by the form of the socket', async () => {
    const login = isHosted ? '&token=k' : '';
    const text = upgradeText(`/ws?clientId=${'x'.repeat(129)}${login}`);
    const { status, headers: told, body } = await say(server.port, text);
    const summary = errorSummary({ status, headers: told, text: body });
    expect(summary).toBe(isHosted ? '400 code invalid_request' : '400 refusal invalid_request');
  });

  test('queueDelete, queueAnswer: a delete ends what runs, or leaves it alone', async () => {
    const id = await running();
    const answer = await post('/api/queue', { delete: [id, 'unknown'] });
    const told = isHosted ? `{"deleted": ["${id}"], "cleared": false}` : '';
    expect([answer.status, answer.text]).toEqual([200, told]);
    if (!isHosted) {
      expect((await getJson(`${url()}/api/job/${id}/status`)).status).toBe('executing');
      await interrupt(url());
    }
    const status = async () => (await getJson(`${url()}/api/job/${id}/status`)).status;
    await expect.poll(status, PATIENCE).toBe('cancelled');
  });

  test('queueItem: the members of a prompt stand in its server’s order', async () => {
    const id = await running();
    const { queue_running: items } = JSON.parse((await get('/api/queue')).text);
    const [number, promptId, graph, fourth, fifth] = items[0];
    expect([promptId, Object.keys(graph)]).toEqual([id, ['1', '9']]);
    const time = { create_time: expect.any(Number) };
    expect([fourth, fifth]).toEqual(isHosted ? [['9'], time] : [time, ['9']]);
    if (isHosted) expect(number).toBe(1);
    await interrupt(url());
    const left = async () => (await getJson(`${url()}/queue`)).queue_running;
    await expect.poll(left, PATIENCE).toEqual([]);
  });

  test.each(['', 'elsewhere', '../..'])(
    'subfolder: %j is a folder in /view, or is ignored',
    async (subfolder) => {
      await uploadInput(url(), {
        bytes: Buffer.from('bytes'),
        name: 'kept.txt',
        fields: { subfolder: 'deep' },
      });
      const query = `?type=input&filename=kept.txt&subfolder=${encodeURIComponent(subfolder)}`;
      const missing = subfolder === '../..' ? 403 : 404;
      const { status } = await get(`/api/view${query}`, { 'Sec-Fetch-Site': 'none' });
      expect(status).toBe(isHosted ? 302 : missing);
      const right = await get('/api/view?type=input&filename=kept.txt&subfolder=deep');
      expect(right.status).toBe(302);
    },
  );

  test('subfolder: a bare name finds an upload in a folder, or does not', async () => {
    const stem = `of-${dialect}`;
    const upload = async (subfolder: string, r: number) => {
      const fields = { subfolder, overwrite: 'true' };
      const file = { bytes: await pngOf({ r, g: 0, b: 0 }), name: `${stem}.png`, fields };
      return uploadInput(`${url()}/api`, file, headers);
    };
    const [one, two] = [await upload('one', 1), await upload('two', 2)];
    expect([one, two]).toMatchObject([
      { name: `${stem}.png`, subfolder: 'one', type: 'input' },
      { name: isHosted ? `${stem} (1).png` : `${stem}.png`, subfolder: 'two', type: 'input' },
    ]);
    const runs = async (name: string) =>
      (await post('/api/prompt', { prompt: loading(name) })).status;
    expect([await runs(one.name), await runs(two.name)]).toEqual(
      isHosted ? [200, 200] : [400, 400],
    );
    const slashed = [`one/${one.name}`, `two/${two.name}`];
    expect([await runs(slashed[0]!), await runs(slashed[1]!)]).toEqual([200, 200]);
    const local = { bytes: await pngOf(), name: `own-${stem}.png`, fields: { subfolder: 'x' } };
    await uploadInput(url(), local, FORMS.local);
    expect(await runs(local.name)).toBe(isHosted ? 200 : 400);
    const left = async () => (await getJson(`${url()}/prompt`)).exec_info.queue_remaining;
    await expect.poll(left, PATIENCE).toBe(0);
  });

  test.each([
    ['a.png', '../x'],
    ['none/a.png', ''],
  ])('subfolder: an upload of %j to %j is refused, or stored', async (name, subfolder) => {
    const body = new FormData();
    body.append('subfolder', subfolder);
    body.append('image', new Blob(['bytes']), name);
    const answer = await fetch(`${url()}/api/upload/image`, { method: 'POST', headers, body });
    const { status } = answer;
    const text = await answer.text();
    if (!isHosted) {
      const told = { 'content-type': answer.headers.get('content-type') ?? '' };
      expect(errorSummary({ status, headers: told, text })).toBe('400 refusal invalid_upload');
      return;
    }
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      { name: 'a.png', subfolder, type: 'input' },
    ]);
  });

  test('viewWithoutName: nothing is found, or a field is missing', async () => {
    for (const path of ['/view', '/api/view']) {
      const { status } = await get(`${path}?type=input`);
      expect(status).toBe(isHosted && path === '/api/view' ? 400 : 404);
    }
  });

  test('apiView: browsers are redirected too, or not; /view never redirects', async () => {
    await uploadInput(url(), { bytes: Buffer.from('bytes'), name: 'seen.txt' });
    const query = '?type=input&filename=seen.txt';
    const browser = { 'Sec-Fetch-Site': 'same-origin', 'Comfy-User': '' };
    const statuses = [
      (await get(`/api/view${query}`)).status,
      (await get(`/api/view${query}`, browser)).status,
      (await get(`/view${query}`)).status,
      (await get(`/view${query}`, browser)).status,
    ];
    expect(statuses).toEqual([302, isHosted ? 302 : 200, 200, 200]);
  });

  test('apiView: a channel of a picture comes at once, or by a link', async () => {
    const { status } = await get('/api/view?type=input&filename=seen.txt&channel=rgb');
    // Of the hosted service this is documented as a 200; the file is no picture.
    expect(status).toBe(isHosted ? 400 : 302);
  });
});

describe('in both forms', () => {
  test('exceptionType: history and jobs say its word, also after a restart', async () => {
    let own = await startHoldover({ upstream: 'embedded' });
    await uploadInput(own.url, { bytes: Buffer.from('no picture'), name: 'corrupt.png' });
    const { body } = await postPrompt(own.url, { prompt: loading('corrupt.png') });
    const id = body.prompt_id as string;
    const said = async (headers: Record<string, string>) => {
      const ask = (path: string) => getJson(`${own.url}${path}`, headers);
      return [
        errorIn((await ask('/api/history'))[id]),
        errorIn((await ask(`/api/history/${id}`))[id]),
        errorIn((await ask('/api/history_v2')).history[0]),
        errorIn((await ask(`/api/history_v2/${id}`))[id]),
        (await ask('/api/jobs')).jobs[0].execution_error.exception_type,
        (await ask(`/api/jobs/${id}`)).execution_error.exception_type,
        errorIn({ status: (await ask(`/api/jobs/${id}`)).execution_status }),
        JSON.parse((await ask(`/api/job/${id}/status`)).error_message).exception_type,
      ];
    };
    const check = async () => {
      expect(await said(FORMS.local)).toEqual(Array(8).fill('PIL.UnidentifiedImageError'));
      expect(await said(FORMS.hosted)).toEqual(Array(8).fill('ValidationError'));
    };
    const job = async () => (await getJson(`${own.url}/api/jobs/${id}`)).status;
    await expect.poll(job, PATIENCE).toBe('failed');
    await check();
    const { dataDir } = own;
    await own.kill9();
    own = await startHoldover({ dataDir, upstream: 'embedded' });
    await check();
    await own.dispose();
  });

  test('queueRunning: one prompt is shown as running, or all; the others can be taken back', async () => {
    const args = ['--concurrency', '2'];
    const own = await startHoldover({ args, upstream: 'embedded' });
    const ids: string[] = [];
    const submit = async (seed: number) => {
      const { body } = await postPrompt(own.url, { prompt: endless({ seed }) });
      ids.push(body.prompt_id);
      const status = async () => (await getJson(`${own.url}/api/jobs/${body.prompt_id}`)).status;
      await expect.poll(status, PATIENCE).toBe('in_progress');
    };
    const queue = async (form: Dialect) => {
      const shown = await getJson(`${own.url}/api/queue`, FORMS[form]);
      const idsIn = (items: [number, string][]) => items.map(([, id]) => id);
      return [idsIn(shown.queue_running), idsIn(shown.queue_pending)];
    };
    const clear = (form: Dialect) =>
      call(own.url, '/api/queue', { method: 'POST', headers: FORMS[form], body: '{"clear":true}' });
    await submit(1);
    await submit(2);
    const [first = '', second = ''] = ids;
    expect(await queue('hosted')).toEqual([[first, second], []]);
    expect(await queue('local')).toEqual([[first], [second]]);
    await clear('hosted');
    expect(await queue('hosted')).toEqual([[first, second], []]);
    await clear('local');
    await expect.poll(() => queue('local'), PATIENCE).toEqual([[first], []]);
    expect(await queue('hosted')).toEqual([[first], []]);
    await own.dispose();
  });

  test('serviceTrouble: a service that is away has the status its document names', async () => {
    const away = ['--upstream', 'http://127.0.0.1:9'];
    const own = await startHoldover({ args: away, upstream: 'embedded' });
    const body = JSON.stringify({ prompt: { '9': { class_type: 'SaveImage', inputs: {} } } });
    const said = async (headers: Record<string, string>) => [
      errorSummary(await call(own.url, '/api/prompt', { method: 'POST', headers, body })),
      errorSummary(await call(own.url, '/api/object_info', { headers })),
    ];
    expect(await said(FORMS.local)).toEqual([
      '502 refusal upstream_unavailable',
      '503 refusal object_info_unavailable',
    ]);
    expect(await said(FORMS.hosted)).toEqual([
      '503 hosted refusal upstream_unavailable',
      '503 code object_info_unavailable',
    ]);
    await own.dispose();
  });
});

test.each([
  ['local', 404, 'redirect', 302],
  ['hosted', 400, 'stream', 200],
] as const)('--dialect %s and --view decide for a call in either form', async (...each) => {
  const [setting, missing, view, found] = each;
  const own = await startHoldover({ args: ['--dialect', setting, '--view', view] });
  await uploadInput(own.url, { bytes: Buffer.from('bytes'), name: 'seen.txt' });
  for (const headers of Object.values(FORMS)) {
    const get = async (path: string) => (await call(own.url, path, { headers })).status;
    expect(await get('/api/view?type=input')).toBe(missing);
    const query = '?type=input&filename=seen.txt';
    expect([await get(`/view${query}`), await get(`/api/view${query}`)]).toEqual([found, found]);
  }
  await own.dispose();
});

function errorIn(entry: any): string {
  const [, data] = entry.status.messages.find(([type]: [string]) => type === 'execution_error');
  return data.exception_type;
}
