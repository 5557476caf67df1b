// Matrix D, rows F37 and F38 in detail: what may have been sent before a kill -9, and what the next
// process makes of it. Never a second job, never an unknown job.
import { randomUUID } from 'node:crypto';
import { FormData } from 'undici';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type Hook, type WireJob, error, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf, markerOf } from '../support/processes/invariants.ts';
import { finish, runsToCompletion, staysRunning } from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Client, type FaultSetup, SLOWER, useSharedSetup } from './open.ts';

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };

const fixed = useSharedSetup({
  env: FIXED,
  args: ['--upstream-assets', 'object'],
  pace: { searchWindowMs: 500 },
  // A submission that a busy machine answers late is not looked for.
  limits: { submitTimeoutMs: 10_000 },
});
vi.setConfig({ testTimeout: 60_000 * SLOWER });

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

/** Kills the server with SIGKILL once the service has jobs of so many prompts, before the server learns of them. */
function killOf({ holdover }: FaultSetup, prompts = 1): Hook {
  let made = 0;
  return async (exchange) => {
    exchange.server.makeJob(exchange);
    if (++made === prompts) await holdover().kill9();
  };
}

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

test('after a kill -9 a prompt is known by the key it was sent under last, and without a key of its own', async () => {
  const { upstream } = fixed;
  const kill = killOf(fixed, 3);
  const send = async (refusals: readonly Hook[], more = {}) => {
    const [client, id] = [await fixed.client(), randomUUID()];
    const body = new FormData();
    body.set('image', new Blob([Buffer.from(id)]), 'm.png');
    await client.ask('/upload/image', { method: 'POST', body });
    const save = { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: id } };
    const load = { class_type: 'LoadImage', inputs: { image: 'm.png' } };
    upstream.once('submit', ...refusals, kill);
    const died = postUntilKilled(client, { id, prompt: { '3': load, '8': save, '9': save }, more });
    await expect.poll(() => client.jobs(id)).toHaveLength(1);
    return { client, id, died, keys: new Set(keysOf(fixed, id)) };
  };
  const details = { node_errors: { '8': [{ field: 'images', reason: 'bad' }] } };
  const fewerOutputs: Hook = ({ json }) => json(422, error('invalid_workflow', 'bad', details));
  const sent = [await send([fewerOutputs])];
  upstream.once('asset', fault.refuse(404, 'asset_not_found'));
  sent.push(await send([fault.refuse(422, 'missing_asset')]));
  sent.push(await send([], { extra_data: { api_key_comfy_org: 'of-another-user' } }));
  await Promise.all(sent.map(({ died }) => died));
  expect(sent.map(({ keys }) => keys.size)).toEqual([2, 2, 1]);
  await fixed.restart();
  for (const { client, id, keys } of sent) {
    await client.reconnect();
    await runsOnce(client, id);
    expect(new Set(keysOf(fixed, id))).toEqual(keys);
  }
  expect(keysOf(fixed, sent.at(-1)?.id ?? '')).toHaveLength(1);
  await fixed.check();
});

test('after a kill -9 an unknown job is not given up for a 402 to its key, and not canceled unseen', async () => {
  const { upstream } = fixed;
  const kill = killOf(fixed, 2);
  const [kept, deleted] = [await fixed.client(), await fixed.client()];
  upstream.script(staysRunning);
  upstream.once('submit', kill, kill);
  const ids = await Promise.all([kept, deleted].map((client) => postUntilKilled(client)));
  upstream.always('submit', fault.refuse(402, 'insufficient_credits'));
  upstream.always('list', fault.refuse(503, 'upstream_unreachable'));
  await fixed.restart();
  await kept.reconnect();
  await deleted.reconnect();
  for (const id of ids)
    await expect.poll(() => keysOf(fixed, id).length, { timeout: 8_000 }).toBeGreaterThan(1);
  const [keptId = '', deletedId = ''] = ids;
  await deleted.say('/queue', { delete: [deletedId] });
  upstream.always('list', honestly);
  const jobOf = (id: string) => kept.jobs(id)[0];
  await expect.poll(() => jobOf(deletedId)?.status, { timeout: 8_000 }).toBe('canceled');
  await deleted.ended(deletedId);
  finish(upstream, jobOf(keptId) as WireJob);
  await runsOnce(kept, keptId);
  await fixed.check();
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

describe('a prompt that came with a key of its own, after a kill -9, with keys passed through', () => {
  // The search of the first process, or that of the next one, must not be over before the service lists jobs.
  const passing = useSharedSetup({ pace: { searchWindowMs: 60_000 } });
  const withKey = (key: string) => ({ extra_data: { api_key_comfy_org: key } });

  test('its job is found without that key; that was never sent, it fails and says why, unless the key is its owner’s', async () => {
    const { upstream } = passing;
    const foreignKey = withKey('of-another-user');
    const unsure = await passing.client();
    upstream.of(unsure.key).always('list', fault.refuse(503, 'upstream_unreachable'));
    upstream.of(unsure.key).once('submit', fault.claimAndDie({ withJob: true }));
    const unknown = await unsure.post({ more: foreignKey });
    const waiting = await passing.client();
    upstream
      .of(waiting.key)
      .always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '30' }));
    const own = await waiting.post({ more: withKey(waiting.key) });
    const foreign = await waiting.post({ more: foreignKey });
    const killed = await passing.client();
    upstream.of(killed.key).once('submit', killOf(passing));
    const id = await postUntilKilled(killed, { more: foreignKey });
    await passing.restart();
    upstream.of(unsure.key).always('list', honestly);
    upstream.of(waiting.key).always('submit', honestly);
    for (const client of [unsure, waiting, killed]) await client.reconnect();
    await runsOnce(killed, id);
    expect(keysOf(passing, id)).toHaveLength(1);
    await runsOnce(unsure, unknown.promptId, unknown.marker);
    await runsOnce(waiting, own.promptId, own.marker);
    const sent = JSON.parse(
      upstream.of(waiting.key).requests('submit').at(-1)?.body.toString() ?? '{}',
    );
    expect(sent.extra_data).toEqual({ api_key_comfy_org: waiting.key });
    const { status } = await waiting.ended(foreign.promptId);
    expect(JSON.stringify(status)).toContain('Keys are never stored');
    expect(waiting.jobs(foreign.marker)).toEqual([]);
    await passing.check();
  });
});
