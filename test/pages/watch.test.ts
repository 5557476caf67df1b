import { describe, expect, test } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Recorder, connect } from '../support/clients/v1-client.ts';
import { flat, growing, streaming } from '../support/graphs/workflows.ts';

const holdover = useHoldover({ upstream: 'embedded' });

async function submit(body: object, key = ''): Promise<string> {
  const answer = await fetch(`${holdover.url}/prompt`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
    body: JSON.stringify(body),
  });
  return ((await answer.json()) as { prompt_id: string }).prompt_id;
}

function watch(key?: string): Promise<Recorder> {
  const headers = key === undefined ? {} : { 'X-API-Key': key };
  return connect(holdover.wsUrl, { clientId: null, query: 'watch=1', headers });
}

describe('/ws?watch=1', () => {
  test('sees what is said to any client of its user, pictures too', async () => {
    const watcher = await watch();
    const id = await submit({ prompt: growing(), client_id: 'another' });
    await watcher.untilDone(id);
    const seen = watcher.outline(id).join(' ');
    expect(seen).toMatch(/execution_start.*executing:1.*progress.*executed:9.*execution_success/);
    expect(watcher.outline()).toContain('binary:1');
    await watcher.close();
  });

  test('sees nothing of other users', async () => {
    const [watcher, theirs] = [await watch('one-key'), await watch('other-key')];
    const id = await submit({ prompt: flat(), client_id: 'another' }, 'other-key');
    await theirs.untilDone(id);
    expect(watcher.outline(id)).toEqual([]);
    await Promise.all([watcher.close(), theirs.close()]);
  });

  test.each([
    [{ client_id: 'late' }, ''],
    [{}, 'token=late-key'],
  ])('takes nothing away from a client that comes later (%j %s)', async (whose, query) => {
    const headers = { 'X-API-Key': 'late-key' };
    const watcher = await watch('late-key');
    const id = await submit({ prompt: streaming(), ...whose }, 'late-key');
    await watcher.untilDone(id);
    const client = await connect(holdover.wsUrl, { clientId: 'late', query, headers });
    await client.untilDone(id);
    expect(client.outline()).toContain('binary:1');
    await Promise.all([watcher.close(), client.close()]);
  });
});
