import { expect, test, vi } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Received, connect } from '../support/clients/v1-client.ts';
import { NOT_A_PICTURE, entryOf } from '../support/clients/client-helpers.ts';
import { flat } from '../support/graphs/workflows.ts';

// Clients without a JSON parser look for a text in what v1 sends: stavrosdidakis/ComfyUI-Unity for
// `"queue_remaining": 0` in each frame, shell scripts for `"prompt_id": "…"` in an answer. The original
// writes a space after each comma and colon, and ASCII only.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();

const textOf = (frame: Received): string => (frame.kind === 'text' ? frame.text : '');

async function answer(path: string, init: RequestInit = {}): Promise<string> {
  return await (await fetch(`${holdover.url}${path}`, init)).text();
}

const post = (body: object): Promise<string> =>
  answer('/prompt', { method: 'POST', body: JSON.stringify(body) });

test('a client that looks for texts in frames and answers gets its file', async () => {
  const socket = await connect(holdover.wsUrl, { clientId: 'unity' });
  const submitted = await post({ prompt: flat({ prefix: 'matched' }), client_id: 'unity' });
  const [, promptId = ''] = /"prompt_id": "([^"]+)"/.exec(submitted) ?? [];
  expect(promptId).not.toBe('');
  await socket.untilDone(promptId);
  const frames = socket.frames.map(textOf);
  await socket.close();
  expect(frames.filter((text) => text.includes('"queue_remaining": 1'))).not.toEqual([]);
  expect(frames.at(-2)).toContain('"queue_remaining": 0');
  expect(frames.at(-1)).toBe(
    `{"type": "executing", "data": {"node": null, "prompt_id": "${promptId}"}}`,
  );
  const entry = await answer(`/history/${promptId}`);
  expect(entry).toContain('"status": {"status_str": "success", "completed": true, "messages": [[');
  expect(/"filename": "([^"]+)"/.exec(entry)?.[1]).toBe('matched_00001_.png');
});

test.each([
  ['/queue', '{"queue_running": [], "queue_pending": []}'],
  ['/prompt', '{"exec_info": {"queue_remaining": 0}}'],
  [
    '/object_info/EmptyImage',
    '{"EmptyImage": {"input": {"required": {"width": ["INT", {"default": ',
  ],
  ['/object_info', '"name": "SaveImage", "display_name": "Save Image"'],
  ['/system_stats', '{"system": {"os": "'],
  ['/users', '{"storage": "server", "migrated": true}'],
])('%s', async (path, text) => {
  expect(await answer(path)).toContain(text);
});

test('an upload, a refused prompt and a refused call', async () => {
  const form = new FormData();
  form.set('image', new Blob([NOT_A_PICTURE]), 'étude.png');
  const uploaded = await answer('/upload/image', { method: 'POST', body: form });
  expect(uploaded).toContain('{"name": "\\u00e9tude.png", "subfolder": "", "type": "input", ');
  expect(await post({})).toContain('{"error": {"type": "no_prompt", "message": "');
  const foreign = await answer('/queue', { headers: { Origin: 'http://elsewhere.example' } });
  expect(foreign === '' || foreign.includes('": ')).toBe(true);
});

test('a history of more than one chunk', async () => {
  const name = `é, "${'x'.repeat(300_000)}": `;
  for (let seed = 0; seed < 4; seed++) {
    const extra_data = { extra_pnginfo: { seed, name } };
    const { prompt_id } = JSON.parse(await post({ prompt: flat({ color: seed }), extra_data }));
    await vi.waitFor(async () => expect(await entryOf(holdover.url, prompt_id)).toBeDefined());
  }
  const history = await answer('/history');
  expect(history.length).toBeGreaterThan(1024 * 1024);
  expect(history).toMatch(/^[ -~]+$/);
  expect(history.replaceAll(/"(?:[^"\\]+|\\.)*"/g, '""')).not.toMatch(/[,:](?! )/);
  const entries: { prompt: any }[] = Object.values(JSON.parse(history));
  const names = entries.map(({ prompt }) => prompt[3].extra_pnginfo?.name);
  expect(names.filter((one) => one === name)).toHaveLength(4);
});
