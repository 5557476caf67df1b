// Programs that take a `status` of no prompts for the end of their own, in the way of two that are no packages.
import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { entryOf } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { growing } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ROUNDS = 3;

const holdover = useHoldover();

/** Resolves at the first frame that says that no prompt is left, if `isWaiting` then. */
function noneLeft(socket: WebSocket, isWaiting = () => true): Promise<void> {
  return new Promise((resolve) => {
    socket.on('message', (data, isBinary) => {
      const { type, data: fields } = isBinary ? {} : JSON.parse((data as Buffer).toString());
      if (type !== 'status' || fields.status.exec_info.queue_remaining !== 0) return;
      if (isWaiting()) resolve();
    });
  });
}

async function filesOf(promptId: string): Promise<unknown> {
  return (await entryOf(holdover.url, promptId))?.outputs['9']?.images;
}

/** The server of ComfyUIMini: it listens when its prompt is posted and the queue is read. */
async function listenLast(round: number): Promise<unknown> {
  const socket = new WebSocket(`${holdover.wsUrl}/ws?clientId=mini`);
  await once(socket, 'open');
  const prompt = growing({ seed: 100 + round, steps: 40, prefix: 'mini' });
  const { body } = await postPrompt(holdover.url, { prompt, client_id: 'mini' });
  const { queue_running: running } = await getJson(`${holdover.url}/queue`);
  // Without one that runs, it takes its prompt for cached, and reads the history at once.
  if (running[0] !== undefined) await noneLeft(socket);
  socket.close();
  return filesOf(body.prompt_id);
}

/** comfy_client of fcole: it listens from the start, without a client id, and reads the facts of the server meanwhile. */
async function listenFirst(round: number): Promise<unknown> {
  const socket = new WebSocket(`${holdover.wsUrl}/ws`);
  let current: string | undefined;
  const ended = noneLeft(socket, () => current !== undefined);
  await Promise.all([once(socket, 'open'), getJson(`${holdover.url}/system_stats`)]);
  const prompt = growing({ seed: 200 + round, steps: 40, prefix: 'batch' });
  current = (await postPrompt(holdover.url, { prompt })).body.prompt_id as string;
  await ended;
  socket.close();
  return filesOf(current);
}

test.each([
  ['listens after its calls', listenLast],
  ['listens from the start', listenFirst],
])('a program that %s finds its files at the first status of 0', async (_which, run) => {
  for (let round = 0; round < ROUNDS; round++) expect(await run(round)).toHaveLength(1);
});
