// Requirements of v1 clients on the first frames of a socket, seen by a client that drops all bytes that
// arrive together with the 101; the numbers are the ranks of the requirements.
import { afterEach, expect, test, vi } from 'vitest';
import { interrupt, untilRunning } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Wire, dial, upgradeText } from '../support/clients/raw-socket.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, growing } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();
const wires: Wire[] = [];

afterEach(() => {
  for (const wire of wires.splice(0)) wire.reset();
});

/** Types of the frames, and of `executing` the node, in the order they arrived after the 101. */
type ReceivedFrames = { readonly until: (text: string) => Promise<string[]> };

async function openDropping(target: string): Promise<ReceivedFrames> {
  const wire = await dial(holdover.port);
  wires.push(wire);
  let dropped = 0;
  let answer = Buffer.alloc(0);
  wire.socket.on('data', (chunk: Buffer) => {
    if (dropped > 0) return;
    answer = Buffer.concat([answer, chunk]);
    if (answer.includes('\r\n\r\n')) dropped = answer.length;
  });
  wire.send(upgradeText(target));
  await wire.until('\r\n\r\n');
  return {
    async until(text) {
      await wire.until(text);
      return typesIn((await wire.received(0)).subarray(dropped).toString('latin1'));
    },
  };
}

function typesIn(frames: string): string[] {
  const types = [...frames.matchAll(/\{"type": "(\w+)", "data": \{(?:"node": "(\w+)")?/g)];
  return types.map(([, type, node]) => (node === undefined ? `${type}` : `${type} ${node}`));
}

async function post(graph: object): Promise<string> {
  const { body } = await postPrompt(holdover.url, { prompt: graph, client_id: 'dropping' });
  return body.prompt_id;
}

test(
  '5, 30: a socket that comes late hears its status, and then all it has missed',
  { retry: 2 },
  async () => {
    await post(growing({ seed: 401, steps: 4 }));
    // Not by its history: a socket that connects after the result was fetched is told nothing of it.
    const left = async () => (await getJson(`${holdover.url}/prompt`)).exec_info.queue_remaining;
    await expect.poll(left, { timeout: 20_000 }).toBe(0);
    const socket = await openDropping('/ws?clientId=dropping');
    const heard = await socket.until('"node": null');
    expect(heard.slice(0, 2)).toEqual(['status', 'execution_start']);
    expect(heard).toContain('execution_success');
  },
);

test(
  '30: a socket that returns to a run hears its status, and then the node',
  { retry: 2 },
  async () => {
    const first = await connect(holdover.wsUrl, { clientId: 'dropping' });
    await post(endless({ seed: 402 }));
    await untilRunning(holdover.url);
    await first.until((frame) => frame.kind === 'text' && frame.type === 'progress');
    await first.close();
    const socket = await openDropping('/ws?clientId=dropping');
    const heard = await socket.until('"type": "executing"');
    await interrupt(holdover.url);
    expect(heard[0]).toBe('status');
    expect(heard[1]).toMatch(/^executing \w+$/);
  },
);

test('29: only the first status names the sid', async () => {
  const socket = await connect(holdover.wsUrl, { clientId: 'dropping' });
  const id = await post(growing({ seed: 403, steps: 4 }));
  await socket.untilDone(id);
  const statuses = socket.frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'status' ? ['sid' in frame.data] : [],
  );
  await socket.close();
  expect(statuses[0]).toBe(true);
  expect(statuses.length).toBeGreaterThan(1);
  expect(statuses.slice(1)).not.toContain(true);
});
