// What people at hosted sockets are told while their prompts wait.
import { expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/hostile-v2.ts';
import { openPair } from '../support/in-front.ts';
import { runs } from '../support/plays.ts';
import { type Recorder, connect, postPrompt } from '../support/v1-client.ts';
import { flat } from '../support/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const NEXT_YEAR = new Date().getUTCFullYear() + 1;

const notices = ({ frames }: Recorder): string[] =>
  frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'notification' ? [frame.data.value as string] : [],
  );

async function open(args: string[] = []) {
  const pair = await openPair({ args });
  pair.upstream.play(runs());
  const socketOf = async (query: string): Promise<Recorder> => {
    const socket = await connect(pair.house.wsUrl, { clientId: 'mine', query });
    onTestFinished(() => socket.socket.terminate());
    return socket;
  };
  onTestFinished(async () => {
    await pair.house.dispose();
    await pair.upstream.close();
  });
  return { ...pair, hosted: await socketOf('token='), local: await socketOf('') };
}

test('a prompt that waits for room is said to wait, to hosted sockets only', async () => {
  const { house, upstream, hosted, local } = await open();
  upstream.once('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '0' }));
  const { status, body } = await postPrompt(house.url, { prompt: flat(), client_id: 'mine' });
  expect(status).toBe(200);
  await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
  expect(notices(hosted)).toEqual([
    expect.stringMatching(`^Prompt ${body.prompt_id} waits: .* need not submit it again`),
  ]);
  expect(notices(local)).toEqual([]);
});

test('a rehearsal of the end that lies ahead is announced on connecting', async () => {
  const from = `${NEXT_YEAR}-06-01T08:00:00Z`;
  const { hosted, local } = await open([
    '--brownout',
    `from=${from},to=${NEXT_YEAR}-06-01T09:00:00Z`,
  ]);
  await expect.poll(() => notices(hosted)).toHaveLength(1);
  expect(notices(hosted)[0]).toContain(`${NEXT_YEAR}-06-01T08:00:00.000Z to `);
  await local.until(() => true);
  expect(notices(local)).toEqual([]);
});
