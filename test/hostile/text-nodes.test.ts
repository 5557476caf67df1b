// Texts that would take all the memory there is.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { MEMORY_MB, doubling, shown, spreading } from '../support/graphs/text-graphs.ts';

let server: Holdover;
let socket: Recorder;

beforeAll(async () => {
  const args = ['--job-memory', String(MEMORY_MB)];
  server = await startHoldover({ upstream: 'embedded', args });
  socket = await connect(server.wsUrl, { clientId: 'one' });
});
afterAll(async () => {
  await socket.close();
  await server.dispose();
});

async function send(prompt: object): Promise<string> {
  const { status, body } = await postPrompt(server.url, { prompt, client_id: 'one' });
  expect(status).toBe(200);
  return body.prompt_id;
}

/** How a prompt ends. */
async function end(prompt: object) {
  const id = await send(prompt);
  await socket.untilDone(id, 60_000);
  const { outputs, status } = (await getJson(`${server.url}/history/${id}`))[id];
  const [, error] = status.messages.find(([type]: [string]) => type === 'execution_error') ?? [];
  return { texts: outputs['9']?.text, error };
}

async function peakMb(): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

describe('a small graph that makes a large text', () => {
  test.each([
    ['by doubling', doubling(40)],
    ['by empty places', spreading()],
  ])('%s fails as a large picture does, and takes no more than it may', async (_, graph) => {
    const before = await peakMb();
    const { error } = await end(graph);
    expect(error).toMatchObject({ exception_type: 'torch.OutOfMemoryError' });
    expect(error.exception_message).toMatch(/^Allocation of .* MiB failed: this job already holds/);
    expect((await peakMb()) - before).toBeLessThan(4 * MEMORY_MB);
    expect(await end(shown('after'))).toMatchObject({ texts: ['after'] });
  });

  test('shows as much as a server can hold', async () => {
    const { texts } = await end(doubling(14));
    expect(texts[0]).toMatch(/… \(shortened from \d+ characters\)$/);
    expect(texts[0].length).toBeLessThan(5 * 2 ** 20);
  });
});
