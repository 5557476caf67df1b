// Matrix D, rows F37 and F38 in detail: what may have been sent before a kill -9, and what the next
// process makes of it. Never a second job, never an unknown job.
import { randomUUID } from 'node:crypto';
import { FormData } from 'undici';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type Hook, error, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf, markerOf } from '../support/processes/invariants.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Client, type FaultSetup, SLOWER, openOwnSetup, useSharedSetup } from './open.ts';

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };

const fixed = useSharedSetup({
  env: FIXED,
  args: ['--upstream-assets', 'object'],
  pace: { searchWindowMs: 500 },
  // A submission that a busy machine answers late is not looked for.
  limits: { submitTimeoutMs: 10_000 },
});
vi.setConfig({ testTimeout: 40_000 * SLOWER });

const honestly: Hook = (exchange) => exchange.honestly();

beforeEach(() => {
  fixed.upstream.script(runsToCompletion());
  for (const route of ['submit', 'list'] as const) fixed.upstream.always(route, honestly);
});

/** The keys that a prompt was sent under. */
const keysOf = ({ upstream }: FaultSetup, marker: string): readonly string[] =>
  upstream
    .requests('submit')
    .filter((sent) => markerOf(sent) === marker)
    .map(keyOf);

/** Kills the server with SIGKILL once the service has a job, before the server learns of it. */
const killOf =
  ({ holdover }: FaultSetup): Hook =>
  async (exchange) => {
    exchange.server.makeJob(exchange);
    await holdover().kill9();
  };

/** Posts into a process that dies of it; the prompt's id and marker. */
async function postUntilKilled(
  client: Client,
  { id = randomUUID(), prompt, more }: { id?: string; prompt?: object; more?: object } = {},
): Promise<string> {
  const body = {
    marker: id,
    prompt: prompt ?? flat({ prefix: id }),
    more: { ...more, prompt_id: id },
  };
  await expect(client.post(body)).rejects.toThrow();
  return id;
}

/** The one job there is, is the prompt's, and both end well. */
async function runsOnce(client: Client, promptId: string, marker = promptId): Promise<void> {
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  expect(client.jobs(marker)).toHaveLength(1);
}

describe('a prompt that was sent under another key than its first', () => {
  const promptOf = (prefix: string) => ({
    '3': { class_type: 'LoadImage', inputs: { image: 'm.png' } },
    '8': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: prefix } },
    '9': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: prefix } },
  });
  const bad8: Hook = ({ json }) => {
    const details = { node_errors: { '8': [{ field: 'images', reason: 'bad' }] } };
    json(422, error('invalid_workflow', 'bad', details));
  };

  test.each([
    ['for fewer outputs', bad8],
    ['for a file with a new record', fault.refuse(422, 'missing_asset')],
  ])('%s: that key is known after a kill -9', async (_, refusal) => {
    const id = randomUUID();
    const { upstream } = fixed;
    const client = await fixed.client();
    const body = new FormData();
    body.set('image', new Blob([Buffer.from(id)]), 'm.png');
    await client.ask('/upload/image', { method: 'POST', body });
    upstream.once('submit', refusal, killOf(fixed));
    upstream.once('asset', fault.refuse(404, 'asset_not_found'));
    await postUntilKilled(client, { id, prompt: promptOf(id) });
    const before = new Set(keysOf(fixed, id));
    expect(before.size).toBe(2);
    await fixed.restart();
    await client.reconnect();
    await runsOnce(client, id);
    expect(new Set(keysOf(fixed, id))).toEqual(before);
    await fixed.check();
  });
});

describe('an unknown job, after a kill -9', () => {
  test('is not given up for a 402 to its key', async () => {
    const { upstream } = fixed;
    const client = await fixed.client();
    upstream.once('submit', killOf(fixed));
    const id = await postUntilKilled(client);
    upstream.always('submit', fault.refuse(402, 'insufficient_credits'));
    const noList = fault.refuse(501, 'not_implemented');
    upstream.once('list', noList, noList);
    await fixed.restart();
    await client.reconnect();
    await runsOnce(client, id);
    await fixed.check();
  });

  test('is not canceled unseen when its prompt is', async () => {
    const { upstream } = fixed;
    const client = await fixed.client();
    upstream.script(undefined);
    upstream.once('submit', killOf(fixed));
    const id = await postUntilKilled(client);
    upstream.always('submit', fault.refuse(402, 'insufficient_credits'));
    upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
    await fixed.restart();
    await client.reconnect();
    await expect.poll(() => keysOf(fixed, id).length).toBeGreaterThan(1);
    await client.say('/queue', { delete: [id] });
    upstream.always('list', honestly);
    await expect.poll(() => client.jobs(id)[0]?.status, { timeout: 8_000 }).toBe('canceled');
    await client.ended(id);
  });
});

/** The refusals a service may answer to a key it has a job for, before it looks at keys. */
test.each([
  ['429', fault.refuse(429, 'queue_full', { 'Retry-After': '0' })],
  ['409', fault.refuse(409, 'idempotency_conflict', { 'Retry-After': '1' })],
  ['401', fault.refuse(401, 'unauthorized')],
  ['403 sso_required', fault.refuse(403, 'sso_required')],
  ['422 deployment_stopped', fault.refuse(422, 'deployment_stopped')],
])('a prompt that is looked for is not failed for a %s to its key', async (_, refusal) => {
  const { upstream } = fixed;
  upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
  const broken = fault.refuse(502, 'bad_gateway');
  const die = fault.claimAndDie({ withJob: true });
  upstream.once('submit', fault.refuse(429, 'queue_full'), die, broken, broken);
  upstream.always('submit', refusal);
  const client = await fixed.client();
  const { promptId, marker } = await client.post();
  await expect.poll(() => keysOf(fixed, marker).length, { timeout: 20_000 }).toBeGreaterThan(4);
  upstream.always('list', honestly);
  await runsOnce(client, promptId, marker);
  await fixed.check();
});

describe('a service that remembers no keys and has no list of jobs', () => {
  beforeEach(() => {
    fixed.upstream.always('list', fault.refuse(404, 'not_found'));
    fixed.upstream.always('submit', (exchange) => {
      exchange.server.keys.clear();
      return exchange.honestly();
    });
  });

  /** Runs once, or ends with an error that says that the outcome is not known. */
  async function isHonest(client: Client, promptId: string, marker = promptId): Promise<void> {
    const entry = await client.ended(promptId);
    expect(client.jobs(marker)).toHaveLength(1);
    expect(JSON.stringify(entry.status.messages)).toContain('could not be found out');
  }

  test('whose answer is lost: the prompt is not sent again', async () => {
    const client = await fixed.client();
    fixed.upstream.once('submit', fault.claimAndDie({ withJob: true }));
    const { status, promptId, marker } = await client.post();
    expect(status).toBe(500);
    await isHonest(client, promptId, marker);
  });

  test('before a Holdover that is killed: the next one does not send the prompt again', async () => {
    const client = await fixed.client();
    fixed.upstream.once('submit', killOf(fixed));
    const id = await postUntilKilled(client);
    await fixed.restart();
    await client.reconnect();
    await isHonest(client, id);
  });
});

describe('a prompt that came with a key of its own, after a kill -9', () => {
  const passing = useSharedSetup();
  const withKey = (key: string) => ({ extra_data: { api_key_comfy_org: key } });

  test.each([
    ['a fixed key', fixed],
    ['keys passed through', passing],
  ])('with %s: its job is found without that key', async (_, setup) => {
    const client = await setup.client();
    setup.upstream.once('submit', killOf(setup));
    const id = await postUntilKilled(client, { more: withKey('of-another-user') });
    await setup.restart();
    await client.reconnect();
    await runsOnce(client, id);
    expect(keysOf(setup, id)).toHaveLength(1);
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
    upstream.always('list', honestly);
    await client.reconnect();
    await runsOnce(client, promptId, marker);
  });

  test('and was never sent: it fails and says why, unless the key is its owner’s', async () => {
    const { upstream } = passing;
    upstream.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '30' }));
    const client = await passing.client();
    const own = await client.post({ more: withKey(client.key) });
    const foreign = await client.post({ more: withKey('of-another-user') });
    await passing.restart();
    upstream.always('submit', honestly);
    await client.reconnect();
    await runsOnce(client, own.promptId, own.marker);
    const sent = JSON.parse(upstream.requests('submit').at(-1)?.body.toString() ?? '{}');
    expect(sent.extra_data).toEqual({ api_key_comfy_org: client.key });
    const { status } = await client.ended(foreign.promptId);
    expect(JSON.stringify(status)).toContain('Keys are never stored');
    expect(client.jobs(foreign.marker)).toEqual([]);
    await passing.check();
  });
});
