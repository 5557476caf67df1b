// Texts that take for ever, or all the memory there is.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import {
  MEMORY_MB,
  backtracking,
  doubling,
  linear,
  matching,
  shown,
  spreading,
} from '../support/graphs/text-graphs.ts';

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

describe('a pattern that would take for ever', () => {
  test('ends with the answer where it can be matched in linear time', async () => {
    expect(await end(matching(linear))).toMatchObject({ texts: ['False'], error: undefined });
  });

  test('ends with an error that says so where it cannot', async () => {
    const { error } = await end(matching(backtracking));
    expect(error).toMatchObject({ node_id: '1', exception_type: 'TimeoutError' });
    expect(error.exception_message).toContain(backtracking);
  });

  test('is interrupted while it is matched, and the next prompt runs', async () => {
    const id = await send(matching(`${backtracking}|x`));
    const isStarted = (frame: Recorder['frames'][number]) =>
      frame.kind === 'text' && frame.data.prompt_id === id && frame.data.node === '1';
    await socket.until(isStarted);
    const asked = Date.now();
    await fetch(`${server.url}/interrupt`, { method: 'POST' });
    await socket.untilDone(id);
    // Half a second is its limit; its own end would come after five.
    expect(Date.now() - asked).toBeLessThan(4000);
    expect(socket.outline(id)).toContain('execution_interrupted');
    expect(await end(shown('next'))).toMatchObject({ texts: ['next'] });
  });
});

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
