// Matrix D, rows F37 and F38 in detail: what may have been sent before a kill -9, and what the next
// process makes of it. Never a second job, never an unknown job.
import { FormData } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { type Hook, error, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf } from '../support/processes/invariants.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { type Client, type FaultSetup, openOwnSetup, SLOWER } from './open.ts';

vi.setConfig({ testTimeout: 40_000 * SLOWER, hookTimeout: 30_000 * SLOWER });

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };
const AFTER_SUBMIT = { HOLDOVER_CRASH_AT: 'after-submit' };

const keysOf = ({ upstream }: FaultSetup) => upstream.requests('submit').map(keyOf);

/** Posts into a process that dies of it. */
async function postUntilKilled(client: Client, promptId: string, body: object = {}): Promise<void> {
  const more = { prompt_id: promptId };
  await expect(client.post({ marker: promptId, more, ...body })).rejects.toThrow();
}

/** The one job there is, is the prompt's, and both end well. */
async function runsOnce(client: Client, promptId: string, marker = promptId): Promise<void> {
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  expect(client.jobs(marker)).toHaveLength(1);
}

describe('a prompt that was sent under another key than its first', () => {
  const prompt = {
    '3': { class_type: 'LoadImage', inputs: { image: 'm.png' } },
    '8': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'key' } },
    '9': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'key' } },
  };
  const bad8: Hook = ({ json }) => {
    const details = { node_errors: { '8': [{ field: 'images', reason: 'bad' }] } };
    json(422, error('invalid_workflow', 'bad', details));
  };

  test.each([
    ['for fewer outputs', bad8],
    ['for a file with a new record', fault.refuse(422, 'missing_asset')],
  ])('%s: that key is known after a kill -9', async (_, refusal) => {
    const args = ['--upstream-assets', 'object'];
    const setup = await openOwnSetup({ env: FIXED, firstEnv: AFTER_SUBMIT, args });
    setup.upstream.script(runsToCompletion());
    const client = await setup.client();
    const body = new FormData();
    body.set('image', new Blob([Buffer.from('abcdef')]), 'm.png');
    await client.ask('/upload/image', { method: 'POST', body });
    setup.upstream.once('submit', refusal);
    setup.upstream.once('asset', fault.refuse(404, 'asset_not_found'));
    await postUntilKilled(client, 'key', { prompt });
    const before = new Set(keysOf(setup));
    expect(before.size).toBe(2);
    await setup.restart();
    await client.reconnect();
    await runsOnce(client, 'key');
    expect(new Set(keysOf(setup))).toEqual(before);
    await setup.check();
  });
});

/** The refusals a service may answer to a key it has a job for, before it looks at keys. */
const NOT_ABOUT_THE_JOB: readonly (readonly [string, Hook])[] = [
  ['402', fault.refuse(402, 'insufficient_credits')],
  ['429', fault.refuse(429, 'queue_full', { 'Retry-After': '0' })],
  ['409', fault.refuse(409, 'idempotency_conflict', { 'Retry-After': '1' })],
  ['401', fault.refuse(401, 'unauthorized')],
  ['403 sso_required', fault.refuse(403, 'sso_required')],
  ['422 deployment_stopped', fault.refuse(422, 'deployment_stopped')],
];

/** Of the list, for so many looks. */
const withoutJobs = (times: number) =>
  Array.from({ length: times }, () => fault.refuse(501, 'not_implemented'));

describe('an unknown job, after a kill -9', () => {
  test.each(NOT_ABOUT_THE_JOB.slice(0, 3))(
    'is not given up for a %s to its key',
    async (_, refusal) => {
      const setup = await openOwnSetup({ env: FIXED, firstEnv: AFTER_SUBMIT });
      setup.upstream.script(runsToCompletion());
      const client = await setup.client();
      await postUntilKilled(client, 'kept');
      setup.upstream.always('submit', refusal);
      setup.upstream.once('list', ...withoutJobs(2));
      await setup.restart();
      await client.reconnect();
      await runsOnce(client, 'kept');
      await setup.check();
    },
  );

  test('is not canceled unseen when its prompt is', async () => {
    const setup = await openOwnSetup({ env: FIXED, firstEnv: AFTER_SUBMIT });
    const client = await setup.client();
    await postUntilKilled(client, 'stop');
    setup.upstream.always('submit', fault.refuse(402, 'insufficient_credits'));
    setup.upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
    await setup.restart();
    await client.reconnect();
    await expect.poll(() => setup.upstream.requests('submit').length).toBeGreaterThan(1);
    await client.say('/queue', { delete: ['stop'] });
    setup.upstream.always('list', (exchange) => exchange.honestly());
    await expect.poll(() => client.jobs('stop')[0]?.status, { timeout: 8_000 }).toBe('canceled');
    await client.ended('stop');
  });
});

test.each(NOT_ABOUT_THE_JOB.slice(3))(
  'a prompt that is looked for is not failed for a %s to its key',
  async (_, refusal) => {
    const setup = await openOwnSetup({ env: FIXED });
    const { upstream } = setup;
    upstream.script(runsToCompletion());
    upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
    const broken = fault.refuse(502, 'bad_gateway');
    const die = fault.claimAndDie({ withJob: true });
    upstream.once('submit', fault.refuse(429, 'queue_full'), die, broken, broken);
    upstream.always('submit', refusal);
    const client = await setup.client();
    const { promptId, marker } = await client.post();
    const submits = () => upstream.requests('submit').length;
    await expect.poll(submits, { timeout: 20_000 }).toBeGreaterThan(4);
    upstream.always('list', (exchange) => exchange.honestly());
    await runsOnce(client, promptId, marker);
    await setup.check();
  },
);

describe('a service that remembers no keys and has no list of jobs', () => {
  const takes: Hook = (exchange) => {
    exchange.server.keys.clear();
    return exchange.honestly();
  };
  const takesAndDies = (last: Hook): Hook => {
    return (exchange) => {
      exchange.server.makeJob(exchange);
      return last(exchange);
    };
  };

  /** Runs once, or ends with an error that says that the outcome is not known. */
  async function isHonest(client: Client, promptId: string, marker = promptId): Promise<void> {
    const entry = await client.ended(promptId);
    expect(client.jobs(marker)).toHaveLength(1);
    expect(JSON.stringify(entry.status.messages)).toContain('could not be found out');
  }

  async function open(more: Parameters<typeof openOwnSetup>[0] = {}): Promise<FaultSetup> {
    const setup = await openOwnSetup({ env: FIXED, pace: { searchWindowMs: 500 }, ...more });
    setup.upstream.script(runsToCompletion());
    setup.upstream.always('list', fault.refuse(404, 'not_found'));
    setup.upstream.always('submit', takes);
    return setup;
  }

  test('whose answer is lost: the prompt is not sent again', async () => {
    const setup = await open();
    const client = await setup.client();
    setup.upstream.once('submit', takesAndDies(fault.reset()));
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(500);
    await isHonest(client, promptId, marker);
  });

  test('before a Holdover that is killed: the next one does not send the prompt again', async () => {
    const setup = await open({ firstEnv: AFTER_SUBMIT });
    const client = await setup.client();
    await postUntilKilled(client, 'once');
    await setup.restart();
    await client.reconnect();
    await isHonest(client, 'once');
  });
});

describe('a prompt that came with a key of its own, after a kill -9', () => {
  const withKey = (key: string) => ({ extra_data: { api_key_comfy_org: key } });

  test.each([
    ['a fixed key', FIXED],
    ['keys passed through', {}],
  ])('with %s: its job is found without that key', async (_, env) => {
    const setup = await openOwnSetup({ env: { ...env }, firstEnv: AFTER_SUBMIT });
    setup.upstream.script(runsToCompletion());
    const client = await setup.client();
    const more = { prompt_id: 'found', ...withKey('of-another-user') };
    await postUntilKilled(client, 'found', { more });
    await setup.restart();
    await client.reconnect();
    await runsOnce(client, 'found');
    expect(keysOf(setup)).toHaveLength(1);
  });

  test('whose outcome was unknown: its job is found all the same', async () => {
    // The search of the first process, or that of the next one, must not be over before the service lists jobs.
    const pace = { searchWindowMs: 60_000 };
    const setup = await openOwnSetup({ env: FIXED, pace });
    const { upstream } = setup;
    upstream.script(runsToCompletion());
    upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
    upstream.once('submit', fault.claimAndDie({ withJob: true }));
    const client = await setup.client();
    const { promptId, marker } = await client.post({ more: withKey('of-another-user') });
    await setup.restart();
    upstream.always('list', (exchange) => exchange.honestly());
    await client.reconnect();
    await runsOnce(client, promptId, marker);
  });

  test('and was never sent: it fails and says why, unless the key is its owner’s', async () => {
    const setup = await openOwnSetup();
    const { upstream } = setup;
    upstream.script(runsToCompletion());
    upstream.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '30' }));
    const client = await setup.client();
    const own = await client.post({ more: withKey(client.key) });
    const foreign = await client.post({ more: withKey('of-another-user') });
    await setup.restart();
    upstream.always('submit', (exchange) => exchange.honestly());
    await client.reconnect();
    await runsOnce(client, own.promptId, own.marker);
    const sent = JSON.parse(upstream.requests('submit').at(-1)?.body.toString() ?? '{}');
    expect(sent.extra_data).toEqual({ api_key_comfy_org: client.key });
    const { status } = await client.ended(foreign.promptId);
    expect(JSON.stringify(status)).toContain('Keys are never stored');
    expect(client.jobs(foreign.marker)).toEqual([]);
    await setup.check();
  });
});
