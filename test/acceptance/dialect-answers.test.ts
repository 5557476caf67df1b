// Rules of src/dialects/dialect.ts whose answers differ in form: settings, model folders, cancelled jobs.
import { describe, expect, test, vi } from 'vitest';
import { untilRunning } from '../support/clients/client-helpers.ts';
import { type Called, call } from '../support/clients/raw-call.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
/** A busy machine is slow, not wrong. */
const PATIENCE = { timeout: 30_000 };

const server = useHoldover();

describe.each([
  ['local', {}],
  ['hosted', { 'X-API-Key': '' }],
] as const)('a call in %s form', (dialect, headers) => {
  const isHosted = dialect === 'hosted';
  const told = ({ status, text }: Called) => [status, text];
  const get = async (path: string) => told(await call(server.url, path, { headers }));
  const post = async (path: string, body: unknown) =>
    told(
      await call(server.url, path, { method: 'POST', headers, body: JSON.stringify(body) ?? '' }),
    );
  const drop = async (path: string) =>
    told(await call(server.url, path, { method: 'DELETE', headers }));
  const submitted = async (prompt: object) => {
    const { body } = await postPrompt(server.url, { prompt }, { headers, path: '/api/prompt' });
    return body.prompt_id as string;
  };
  const ended = async () => {
    const id = await submitted(flat());
    const status = async () =>
      (await getJson(`${server.url}/api/job/${id}/status`, headers)).status;
    await expect.poll(status, PATIENCE).toBe('success');
    return id;
  };
  const notFound = '{"code": "not_found", "message": "Job not found"}';
  const unknownJob = [404, isHosted ? notFound : '{"error": "Job not found"}'];

  test('settings: bare values and nothing to a change, or {value} and the merged settings', async () => {
    const missing = `/api/settings/missing-${dialect}`;
    expect(await get(missing)).toEqual(
      isHosted
        ? [404, '{"code": "not_found", "message": "There is no such setting."}']
        : [200, 'null'],
    );
    expect(await post('/api/settings/b', [2])).toEqual([200, isHosted ? '{"value": [2]}' : '']);
    expect(await get('/api/settings/b')).toEqual([200, isHosted ? '{"value": [2]}' : '[2]']);
    const merged = '{"a": 1, "b": [2]}';
    expect(await post('/api/settings', { a: 1 })).toEqual([200, isHosted ? merged : '']);
    expect(await get('/api/settings')).toEqual([200, merged]);
  });

  test('emptyModelFolder: an empty list, or a 404', async () => {
    expect(await get('/api/experiment/models/loras')).toEqual(
      isHosted
        ? [404, '{"code": "not_found", "message": "There is no model in this folder."}']
        : [200, '[]'],
    );
  });

  test('jobCancel: one id that names no job is passed over, or a 404', async () => {
    expect(await post('/api/jobs/none/cancel', {})).toEqual(
      isHosted ? unknownJob : [200, '{"cancelled": false}'],
    );
    const id = await ended();
    expect(await post(`/api/jobs/${id}/cancel`, {})).toEqual([200, '{"cancelled": false}']);
  });

  test('jobCancel: of several ids all are known or none is cancelled', async () => {
    const done = await ended();
    const id = await submitted(endless());
    await untilRunning(server.url);
    const withUnknown = { job_ids: [id, '00000000-0000-4000-8000-000000000000'] };
    if (isHosted) {
      expect(await post('/api/jobs/cancel', withUnknown)).toEqual(unknownJob);
      for (const wrong of [[], null, 'none', 7, { none: 1 }]) {
        expect(await post('/api/jobs/cancel', { job_ids: wrong })).toEqual([
          400,
          '{"code": "invalid_request", "message": "\\"job_ids\\" must be a list of 1 to 100 ids."}',
        ]);
      }
      const { status } = await getJson(`${server.url}/api/jobs/${id}`, headers);
      expect(status).toBe('in_progress');
      expect(await post('/api/jobs/cancel', { job_ids: [done, id] })).toEqual([
        200,
        `{"cancelled": ["${id}"]}`,
      ]);
    } else {
      expect(await post('/api/jobs/cancel', { job_ids: ['none', 7, null] })).toEqual([
        400,
        '{"error": "job_ids contains invalid id(s)", "invalid_ids": ["none", "7", "None"]}',
      ]);
      expect(await post('/api/jobs/cancel', withUnknown)).toEqual([200, '{"cancelled": true}']);
    }
    const status = async () => (await getJson(`${server.url}/api/jobs/${id}`, headers)).status;
    await expect.poll(status, PATIENCE).toBe('cancelled');
  });

  test('DELETE /api/jobs/{id} forgets a job that has ended, and no other', async () => {
    const id = await ended();
    expect(await drop(`/api/jobs/${id}`)).toEqual([204, '']);
    expect(await get(`/api/jobs/${id}`)).toEqual(unknownJob);
    expect(await drop(`/api/jobs/${id}`)).toEqual(unknownJob);
    const live = await submitted(endless());
    expect((await drop(`/api/jobs/${live}`))[0]).toBe(409);
    await post(`/api/jobs/${live}/cancel`, {});
  });
});
