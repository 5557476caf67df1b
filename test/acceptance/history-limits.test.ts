// The bounds of a user's history in bytes, and of one prompt's graph in it, on a real server.
import { afterEach, expect, test } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

let server: Holdover;
afterEach(() => server.dispose());

const PICTURE = `data:image/png;base64,${'A'.repeat(300_000)}`;

async function run(note: string): Promise<string> {
  const socket = await connect(server.wsUrl);
  const more = { client_id: 'test-client', extra_data: { note } };
  const { body } = await postPrompt(server.url, { prompt: flat(), ...more });
  await socket.untilDone(body.prompt_id);
  await socket.close();
  return body.prompt_id as string;
}

test('a prompt with a larger graph than history keeps runs, and its entry says what is left out', async () => {
  server = await startHoldover({ args: ['--limits', '{"history":{"graphBytes":100000}}'] });
  const id = await run(PICTURE);
  const entry = await entryOf(server.url, id);
  expect(entry.status).toMatchObject({ status_str: 'success', completed: true });
  expect(Object.keys(entry.outputs)).toEqual(['9']);
  const [, promptId, graph, extraData, targets] = entry.prompt;
  expect([promptId, targets]).toEqual([id, ['9']]);
  expect(graph['9'].class_type).toBe('SaveImage');
  expect(extraData.note).toBe(
    `${PICTURE.slice(0, 100)}… (${PICTURE.length - 100} more characters are left out of the history)`,
  );
  expect(await getJson(`${server.url}/api/jobs/${id}`)).toMatchObject({ status: 'completed' });
});

test('a history beyond its limit of bytes loses its oldest entries, never the newest', async () => {
  server = await startHoldover({ args: ['--limits', '{"history":{"bytes":1000000}}'] });
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await run(PICTURE));
  await expect
    .poll(async () => Object.keys(await getJson(`${server.url}/history`)))
    .toEqual(ids.slice(-1));
});

test('a history of more than a megabyte is what its entries are, one by one and in all forms', async () => {
  server = await startHoldover();
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await run(`${PICTURE} ${n}`));
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
