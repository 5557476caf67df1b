import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, formatOf, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { flat, loading } from '../support/graphs/workflows.ts';
import { type Stack, notRun, openStack } from './open.ts';

// The real self-hosted server is restarted without `--state-dir`: it knows no upload any more, and
// the ids it gave to outputs are not its own.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SOON = { timeout: 20_000, interval: 50 };

describe.skipIf(notRun !== '')(`after a restart of comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await openStack();
    await uploadInput(stack.holdover.url, { bytes: await pngOf(), name: 'before.png' });
    await run(flat({ prefix: 'made', color: 12 }));
    await stack.restartProxy();
  });
  afterAll(() => stack?.close());

  async function run(graph: object): Promise<any> {
    const id = await stack.post(graph);
    return vi.waitUntil(() => entryOf(stack.holdover.url, id), SOON);
  }

  const view = (query: string, headers: Record<string, string> = {}) =>
    fetch(`${stack.holdover.url}/view?${query}`, { headers });

  test('an earlier output is read by the job that made it', async () => {
    for (let again = 0; again < 2; again++) {
      const answer = await view('filename=made_00001_.png');
      expect(answer.status).toBe(200);
      expect(await formatOf(await answer.arrayBuffer())).toBe('png 20x12');
    }
  });

  test('an earlier output is the input of the next run', async () => {
    const entry = await run(loading('made_00001_.png [output]', 'from-made'));
    expect(entry.status.status_str).toBe('success');
  });

  test('an earlier upload is shown from the copy, whole and in part', async () => {
    const bytes = await pngOf();
    const whole = await view('filename=before.png&type=input');
    expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(bytes)]).toEqual([
      200,
      true,
    ]);
    const part = await view('filename=before.png&type=input', { Range: 'bytes=1-3' });
    expect([part.status, await part.text()]).toEqual([206, 'PNG']);
  });

  test('an earlier upload is sent again when a prompt names it', async () => {
    const entry = await run(loading('before.png', 'from-before'));
    expect(entry.status.status_str).toBe('success');
    // It is the server's own again.
    await stack.front.down();
    expect((await view('filename=before.png&type=input')).status).toBe(200);
    await stack.front.up();
  });

  test('a file whose bytes the engine has lost is gone', async () => {
    await run(flat({ prefix: 'lost', color: 13 }));
    stack.front.answer('GET', /^\/view\?.*lost_00001_/, (_, res) => void res.writeHead(404).end());
    expect((await view('filename=lost_00001_.png')).status).toBe(404);
  });
});
