// The bounds of a user's history in bytes, and of one prompt's graph in it, on a real server.
import { expect, onTestFinished, test } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

const wide = useHoldover({ args: ['--limits', '{"history":{"graphBytes":400000}}'] });

const PICTURE = `data:image/png;base64,${'A'.repeat(300_000)}`;

async function run({ url, wsUrl }: Holdover, note: string, headers = {}): Promise<string> {
  const socket = await connect(wsUrl, { headers });
  const more = { client_id: 'test-client', extra_data: { note } };
  const { body } = await postPrompt(url, { prompt: flat(), ...more }, { headers });
  await socket.untilDone(body.prompt_id);
  await socket.close();
  return body.prompt_id as string;
}

test('a prompt with a larger graph than history keeps runs, and its entry says what is left out', async () => {
  const headers = { 'X-API-Key': 'large' };
  const large = PICTURE.repeat(2);
  const id = await run(wide, large, headers);
  const entry = await entryOf(wide.url, id, headers);
  expect(entry.status).toMatchObject({ status_str: 'success', completed: true });
  expect(Object.keys(entry.outputs)).toEqual(['9']);
  const [, promptId, graph, extraData, targets] = entry.prompt;
  expect([promptId, targets]).toEqual([id, ['9']]);
  expect(graph['9'].class_type).toBe('SaveImage');
  expect(extraData.note).toBe(
    `${large.slice(0, 100)}… (${large.length - 100} more characters are left out of the history)`,
  );
  const job = await getJson(`${wide.url}/api/jobs/${id}`, headers);
  expect(job).toMatchObject({ status: 'completed' });
});

test('a history beyond its limit of bytes loses its oldest entries, never the newest', async () => {
  const server = await startHoldover({ args: ['--limits', '{"history":{"bytes":1000000}}'] });
  onTestFinished(() => server.dispose());
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await run(server, PICTURE));
  await expect
    .poll(async () => Object.keys(await getJson(`${server.url}/history`)))
    .toEqual(ids.slice(-1));
  const large = await run(server, PICTURE.repeat(4));
  for (const path of ['history', 'api/history_v2', 'api/jobs']) {
    const { status, headers } = await fetch(`${server.url}/${path}/${large}`);
    expect([status, headers.get('content-length')], path).toEqual([200, null]);
  }
});

test('a history of more than a megabyte is what its entries are, one by one and in all forms', async () => {
  const server = wide;
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await run(server, `${PICTURE} ${n}`));
  const whole = await fetch(`${server.url}/history`);
  expect(whole.headers.get('content-length')).toBeNull();
  const history = (await whole.json()) as Record<string, unknown>;
  expect(Object.keys(history)).toEqual(ids);
  for (const id of ids) {
    expect(await getJson(`${server.url}/history/${id}`)).toEqual({ [id]: history[id] });
  }
  const newest = await fetch(`${server.url}/history?max_items=1`);
  expect(newest.headers.get('content-length')).not.toBeNull();
  expect(Object.keys((await newest.json()) as object)).toEqual(ids.slice(-1));
  const v2 = await getJson(`${server.url}/api/history_v2`);
  expect(v2.history.map(({ prompt_id: id }: { prompt_id: string }) => id)).toEqual(
    ids.toReversed(),
  );
});
