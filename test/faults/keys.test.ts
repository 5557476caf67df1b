// Keys that a service repeats in its own words: no client reads them, and no disk keeps them.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { error, fault } from '../support/upstreams/hostile-v2.ts';
import { type Client, type FaultSetup, useSharedSetup } from './open.ts';

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const FIXED_KEY = 'the-fixed-key-canary';
const PARTNER = 'partner-key-canary';

/** All that clients and the disk get to see. */
async function shown(setup: FaultSetup, client: Client, promptId: string): Promise<string> {
  const paths = [`/history/${promptId}`, `/api/jobs/${promptId}`, `/api/job/${promptId}/status`];
  const answers = await Promise.all(paths.map((path) => client.ask(path)));
  const { dataDir } = setup.holdover();
  const files = (await readdir(dataDir, { withFileTypes: true })).filter((file) => file.isFile());
  const kept = await Promise.all(files.map(({ name }) => readFile(join(dataDir, name), 'latin1')));
  const texts = answers.map(({ text }) => text);
  return [...texts, JSON.stringify(client.socket.frames), ...kept, setup.holdover().log()].join(
    '\n',
  );
}

const fixed = useSharedSetup({ env: { HOLDOVER_UPSTREAM_KEY: FIXED_KEY } });
const passing = useSharedSetup();

test.each([
  ['our own', fixed],
  ['the caller’s', passing],
])('a job that repeats %s and a partner’s key', async (_, setup) => {
  const { upstream } = setup;
  const client = await setup.client();
  const account = setup === fixed ? FIXED_KEY : client.key;
  upstream.script(async (job, server) => {
    const said = `called with ${FIXED_KEY}, ${client.key} and ${PARTNER}`;
    await sleep(20);
    const progress = { value: 0.5, nodes_done: 0, nodes_total: 2, current_node: '1' };
    server.change(job.id, { status: 'running' });
    server.emit(job.id, 'progress', { ...progress, message: said });
    server.emit(job.id, 'x_text', { node_id: '1', text: said });
    await sleep(100);
    const failure = { code: 'node_execution_error', node_id: '1', message: said, traceback: said };
    server.change(job.id, { status: 'failed', error: failure });
  }, account);
  const extra_data = { api_key_comfy_org: PARTNER };
  const { promptId } = await client.post({ more: { extra_data } });
  await client.ended(promptId);
  await client.socket.untilDone(promptId);
  const text = await shown(setup, client, promptId);
  expect(upstream.of(account).requests('submit')).not.toEqual([]);
  expect(text).toContain('called with');
  expect(text).not.toContain(PARTNER);
  expect(text).not.toContain(account);
});

test('a refusal, after a wait for room, that repeats a partner’s key', async () => {
  const client = await passing.client();
  const refuse = fault.refuse(429, 'queue_full');
  passing.upstream
    .of(client.key)
    .once('submit', refuse, ({ json }) =>
      json(422, error('invalid_workflow', `the key ${PARTNER} is none`)),
    );
  const extra_data = { api_key_comfy_org: PARTNER };
  const { promptId } = await client.post({ more: { extra_data } });
  await client.ended(promptId);
  const text = await shown(passing, client, promptId);
  expect(text).toContain('the key [removed] is none');
  expect(text).not.toContain(PARTNER);
});
