// Matrix D, rows F37 and F38 in detail: what may have been sent before a kill -9, and what the next
// process makes of it. Never a second job, never a job nobody knows.
import { FormData } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { type Hook, error, fault } from '../support/hostile-v2.ts';
import { keyOf } from '../support/invariants.ts';
import { runs } from '../support/plays.ts';
import { type Client, type Scene, ownScene } from './open.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 30_000 });

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };
const AFTER_SUBMIT = { HOLDOVER_CRASH_AT: 'after-submit' };

const keysOf = ({ upstream }: Scene) => upstream.requests('submit').map(keyOf);

/** Posts into a process that dies of it. */
async function postAndDie(client: Client, promptId: string, body: object = {}): Promise<void> {
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
    const scene = await ownScene({ env: FIXED, firstEnv: AFTER_SUBMIT, args });
    scene.upstream.play(runs());
    const client = await scene.client();
    const body = new FormData();
    body.set('image', new Blob([Buffer.from('abcdef')]), 'm.png');
    await client.ask('/upload/image', { method: 'POST', body });
    scene.upstream.once('submit', refusal);
    scene.upstream.once('asset', fault.refuse(404, 'asset_not_found'));
    await postAndDie(client, 'key', { prompt });
    const before = new Set(keysOf(scene));
    expect(before.size).toBe(2);
    await scene.restart();
    await client.reconnect();
    await runsOnce(client, 'key');
    expect(new Set(keysOf(scene))).toEqual(before);
    await scene.check();
  });
});
