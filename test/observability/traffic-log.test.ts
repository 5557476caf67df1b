import { expect, test } from 'vitest';
import { CallCauses } from '../../src/observability/call-causes.ts';
import { observePort } from '../../src/observability/observed-port.ts';
import { SecretRedactor } from '../../src/observability/secret-redactor.ts';
import { TrafficLog } from '../../src/observability/traffic-log.ts';
import { type JobApi, type JobEvent, ok, refuse } from '../../src/protocol/job-api.ts';

const CANARY = 'canary-key-0123456789';
const caller = { user: 'ann', credential: CANARY };

type Line = { readonly [name: string]: unknown };

function open(events: readonly JobEvent[] = []) {
  const lines: Line[] = [];
  const isKnown = (user: string, id: string): boolean => user === 'ann' && id === 'job-1';
  const causes = new CallCauses((user, id) => (isKnown(user, id) ? 'prompt-1' : undefined));
  const traffic = new TrafficLog({
    log: { debug: (fields: unknown) => void lines.push(fields as Line) } as never,
    secrets: new SecretRedactor(),
    causes,
  });
  const port = {
    submit: async () => ok({ id: 'job-1', status: 'queued' }),
    get: async () => refuse(404, 'not_found', `no such job, ${CANARY}`),
    async events() {
      return ok(
        (async function* () {
          yield* events;
        })(),
      );
    },
    health: async () => ok({ status: 'healthy', upstream: 'test' }),
  } as unknown as JobApi;
  const jobs = observePort(port, { subscribers: [traffic.portCall], causes });
  return { lines, traffic, causes, jobs };
}

test('a submission is logged with its prompt, without its graph and its keys', async () => {
  const { lines, causes, jobs } = open();
  const submitter = { ...caller };
  causes.causeOf(submitter).promptId = 'prompt-7';
  await jobs.submit(submitter, {
    workflow: { 1: { class_type: 'Note', inputs: { text: 'private' } } },
    extraData: { api_key_comfy_org: `${CANARY}-partner` },
  });
  expect(lines).toMatchObject([
    {
      event: 'v2.call',
      operation: 'POST /api/v2/jobs',
      promptId: 'prompt-7',
      jobId: 'job-1',
      nodes: 1,
    },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/canary|private/);
});

test('a refusal is logged with its code, and a key quoted in it is removed', async () => {
  const { lines, jobs } = open();
  await jobs.get(caller, 'job-1');
  expect(lines).toMatchObject([
    { event: 'v2.call', promptId: 'prompt-1', outcome: 'refused', status: 404, code: 'not_found' },
  ]);
  expect(JSON.stringify(lines)).not.toContain('canary');
});

test('each event of a stream is logged with the prompt of its job, pictures by their size', async () => {
  const events: JobEvent[] = [
    { event: 'status', data: { status: 'running' } },
    {
      event: 'preview',
      data: { node_id: '2', content_type: 'image/png', bytes: new Uint8Array(9) },
    },
  ];
  const { lines, jobs } = open(events);
  const stream = await jobs.events(caller, 'job-1', new AbortController().signal);
  const seen: JobEvent[] = [];
  for await (const event of stream.ok ? stream.value : []) seen.push(event);
  expect(seen).toEqual(events);
  expect(lines.slice(1)).toMatchObject([
    { event: 'v2.event', promptId: 'prompt-1', jobId: 'job-1', kind: 'status', status: 'running' },
    { event: 'v2.event', promptId: 'prompt-1', kind: 'preview', node_id: '2', bytes: 9 },
  ]);
});

test('a frame is logged with its prompt; a binary one with that of the frame before', () => {
  const { lines, traffic } = open();
  const socket = { direction: 'out', user: 'ann', sid: 's1' } as const;
  const executing = '{"type":"executing","data":{"node":"1","prompt_id":"prompt-1"}}';
  traffic.frame({ ...socket, payload: executing });
  traffic.frame({ ...socket, payload: Buffer.from([0, 0, 0, 1, 0, 0, 0, 2, 255]) });
  traffic.frame({ ...socket, sid: 's2', payload: '{"type":"status","data":{}}' });
  expect(lines).toMatchObject([
    { event: 'v1.frame', sid: 's1', promptId: 'prompt-1', type: 'executing', text: executing },
    { event: 'v1.frame', sid: 's1', promptId: 'prompt-1', type: 'binary 1', bytes: 9 },
    { event: 'v1.frame', sid: 's2', type: 'status' },
  ]);
});

test('a call is logged with the prompts it is about and without the login in its address', () => {
  const { lines, traffic } = open();
  const call = { method: 'POST', status: 200, ms: 3, user: 'ann' };
  traffic.httpCall({ ...call, url: `/queue?token=${CANARY}`, promptIds: ['a', 'b'] });
  traffic.httpCall({ ...call, url: '/api/v2/jobs', promptIds: [] });
  expect(lines).toMatchObject([
    { event: 'v1.call', url: '/queue?token=[removed]', promptId: 'a', promptIds: ['a', 'b'] },
    { event: 'v2.client_call', url: '/api/v2/jobs' },
  ]);
});

test('a key that is a part of the JSON of a line breaks no line', async () => {
  const { lines, traffic, jobs } = open();
  await jobs.get({ user: 'eve', credential: '"direction":"out"' }, 'job-9');
  const payload = JSON.stringify({ type: 'status', data: {} });
  traffic.frame({ direction: 'out', user: 'ann', sid: 'a', payload });
  expect(lines.at(-1)).toMatchObject({ event: 'v1.frame', direction: 'out', user: 'ann' });
});

test('a partner key with half a character is no obstacle to its prompt', async () => {
  const { lines, jobs } = open();
  const submitted = await jobs.submit(caller, {
    workflow: {},
    extraData: { api_key_comfy_org: '\ud800-half-a-key' },
  });
  expect(submitted.ok).toBe(true);
  expect(lines.at(-1)).toMatchObject({ event: 'v2.call', jobId: 'job-1' });
});

test('calls of the model router and of partners are not those of v1', () => {
  const { lines, traffic } = open();
  const call = { method: 'GET', status: 200, ms: 1, user: 'ann', promptIds: [] };
  const targets = [
    '/v2/models/a',
    '/v1/models',
    '/proxy/a/b?c=/',
    '/api/v2/jobs',
    '/api/v2x',
    '/api/v2/userdata?path=workflows',
    '/queue',
  ];
  for (const url of targets) traffic.httpCall({ ...call, url });
  const [v1, v2] = ['v1.call', 'v2.client_call'];
  expect(lines.map(({ event }) => event)).toEqual([v2, v2, v2, v2, v1, v1, v1]);
});
