import { describe, expect, test, vi } from 'vitest';
import type { SubmitRequest } from '../../../src/protocol/job-api.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { error, fault } from '../../support/upstreams/hostile-v2.ts';
import { graph, value } from '../../support/app/jobs.ts';
import { CALLER, CANARY, type Opened, PATIENT, openRemote } from './open.ts';

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
  test('in the error of a job that was found again', async () => {
    const { upstream, remote } = await openRemote({ format: { labels: 'none' } });
    upstream.always('submit', fault.claimAndDie({ withJob: true }));
    upstream.always('list', ({ json }) => json(503, error('upstream_unreachable')));
    const sentAtMs = Date.now();
    expect((await remote.submit(CALLER, REQUEST)).ok).toBe(false);
    upstream.always('list', (exchange) => exchange.honestly());
    const [job] = upstream.jobs.values();
    upstream.change(job?.id ?? '', { status: 'failed', error: FAILURE });
    const found = value(await remote.search(CALLER, { ...REQUEST, sentAtMs }));
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
