import { describe, expect, test, vi } from 'vitest';
import type { SubmitRequest } from '../../../src/protocol/job-api.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { error, fault, frame } from '../../support/upstreams/hostile-v2.ts';
import { collect, graph, value } from '../../support/app/jobs.ts';
import { CALLER, CANARY, type Opened, PATIENT, asked, openRemote } from './open.ts';

const WORKFLOW = graph({ 1: ['Number', { value: 1 }] });
const PARTNER = 'partner-node-key';
const REQUEST = { workflow: WORKFLOW, extraData: { api_key_comfy_org: PARTNER } };
const SAID = `Bearer ${CANARY} and ${PARTNER} were refused`;
const FAILURE = {
  code: 'node_execution_error',
  message: SAID,
  node_id: '1',
  traceback: `headers={'Authorization': '${SAID}'}\nRuntimeError: no`,
  x_current_inputs: { [CANARY]: [{ key: PARTNER }] },
};
const PROGRESS = { value: 0.5, nodes_done: 0, nodes_total: 1, current_node: '1', message: SAID };

const BOTH = new RegExp(`${CANARY}|${PARTNER}`);

async function submitted({ remote }: Opened, request: SubmitRequest = REQUEST): Promise<string> {
  return value(await remote.submit(CALLER, request)).id;
}

/** Reads the job until the service reports its failure. */
function asFailed({ remote }: Opened, id: string): Promise<Job> {
  const read = async () => value(await remote.get(CALLER, id));
  return vi.waitUntil(async () => (await read()).error && read(), PATIENT) as Promise<Job>;
}

describe('keys that a service repeats are shown to no caller', () => {
  test('in what went wrong with a job, and how far it has come', async () => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    const id = await submitted(opened);
    const x_ui = { 1: { text: [SAID] } };
    upstream.change(id, { status: 'failed', error: FAILURE, progress: PROGRESS, x_ui });
    const ways = {
      get: await asFailed(opened, id),
      list: value(await remote.list(CALLER, {})),
      cancel: value(await remote.cancel(CALLER, id)),
    };
    expect(JSON.stringify(ways)).not.toMatch(BOTH);
    expect(ways.get.error?.message).toBe('Bearer [removed] and [removed] were refused');
    expect(ways.get.progress).toMatchObject({ value: 0.5, current_node: '1' });
  });

  test('on a stream of events', async () => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    const id = await submitted(opened);
    const frames = [
      frame('status', { status: 'running' }),
      frame('progress', PROGRESS),
      frame('x_text', { node_id: '1', text: SAID }),
      frame('x_node', { node_id: '1', phase: 'finished', ui: { [SAID]: [SAID] } }),
    ];
    upstream.always('events', fault.sse(frames.join('')));
    void asked(upstream, 'events', 2).then(() => upstream.change(id, { status: 'succeeded' }));
    const events = await collect(remote, id, CALLER);
    expect(events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['progress', 'x_text', 'x_node']),
    );
    expect(JSON.stringify(events)).not.toMatch(BOTH);
  });

  test('in a refusal of the submission', async () => {
    const { upstream, remote } = await openRemote();
    const body = { error: { code: SAID, message: SAID, details: { [SAID]: [SAID] } } };
    upstream.always('submit', ({ json }) => json(422, body));
    const refused = await remote.submit(CALLER, REQUEST);
    expect(refused.ok).toBe(false);
    expect(JSON.stringify(refused)).not.toMatch(BOTH);
  });

  test('in the error of a job that was found again', async () => {
    const { upstream, remote } = await openRemote({ labels: 'none' });
    upstream.always('submit', fault.claimAndDie({ withJob: true }));
    upstream.always('list', ({ json }) => json(503, error('upstream_unreachable')));
    const sentAtMs = Date.now();
    expect((await remote.submit(CALLER, REQUEST)).ok).toBe(false);
    upstream.always('list', (exchange) => exchange.honestly());
    const [job] = upstream.jobs.values();
    upstream.change(job?.id ?? '', { status: 'failed', error: FAILURE });
    const found = value(await remote.recover(CALLER, { ...REQUEST, sentAtMs }));
    expect(found.job?.error?.code).toBe('node_execution_error');
    expect(JSON.stringify(found)).not.toMatch(BOTH);
  });
});

test('the text of an error stays as it is where a key is no longer than a word', async () => {
  const opened = await openRemote();
  const extraData = { api_key_comfy_org: '', auth_token_comfy_org: 'no' };
  const id = await submitted(opened, { workflow: WORKFLOW, extraData });
  opened.upstream.change(id, { status: 'failed', error: { code: 'x', message: 'not now' } });
  expect((await asFailed(opened, id)).error?.message).toBe('not now');
});
