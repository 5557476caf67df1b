import { describe, expect, test, vi } from 'vitest';
import { interrupt, pngOf, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, loading } from '../support/graphs/workflows.ts';

// Cases that a sceptical customer tried and no other test covers.

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover({ args: ['--limits', '{"history":{"count":3}}'] });

const post = (graph: object, extra: object = {}, headers: Record<string, string> = {}) =>
  postPrompt(holdover.url, { prompt: graph, client_id: 'customer', ...extra }, { headers });
const ids = (items: any[]): string[] => items.map((item) => item[1]);

describe('/queue while another user holds the engine', () => {
  const other = { 'X-API-Key': 'holds-the-engine' };

  test('shows the oldest prompt as running whatever overtakes it, the rest in the order they run', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'customer' });
    await post(endless(), {}, other);
    await untilRunning(holdover.url, other);
    const wishes = [
      {},
      { number: 5 },
      // As Python reads a number.
      { number: '0_5.0' },
      { front: true },
      { number: -0.5 },
      { front: true },
    ];
    const sent: string[] = [];
    for (const [i, wish] of wishes.entries()) {
      // Ids that sort the other way round than they come.
      const prompt_id = `wish-${9 - i}`;
      sent.push((await post(flat({ color: 700 + i }), { prompt_id, ...wish })).body.prompt_id);
    }
    const [first, five, alsoFive, front, half, frontmost] = sent as [string, ...string[]];
    const { queue_running: running, queue_pending: pending } = await getJson(
      `${holdover.url}/queue`,
    );
    expect(ids(running)).toEqual([first]);
    expect(ids(pending)).toEqual([frontmost, front, half, five, alsoFive]);
    await interrupt(holdover.url, other);
    await socket.untilDone(alsoFive as string);
    const started = socket.frames.flatMap((frame) =>
      frame.kind === 'text' && frame.type === 'execution_start' ? [frame.data.prompt_id] : [],
    );
    expect(started).toEqual([frontmost, front, half, first, five, alsoFive]);
    await socket.close();
  });
});

describe('a LoadImage', () => {
  const refusal = async (image: unknown) => {
    const { status, body } = await post(loading(image as string));
    return [
      status,
      body.node_errors?.['3']?.errors.map((error: any) => [error.type, error.details]),
    ];
  };

  test.each(['temp', 'output'])('of a plain name finds no file uploaded as %s', async (type) => {
    const name = `only-${type}.png`;
    await uploadInput(holdover.url, { bytes: await pngOf(), name, fields: { type } });
    const details = `image - Invalid image file: ${name}`;
    expect(await refusal(name)).toEqual([400, [['custom_validation_failed', details]]]);
    expect((await post(loading(`${name} [${type}]`))).status).toBe(200);
  });
});

test.each([
  ['name', 'half-a-pair:'],
  ['password', ':half-a-pair'],
])('Basic with a key as its only part, the %s, is the user of that key', async (_, pair) => {
  const key = { 'X-API-Key': 'half-a-pair' };
  const { body } = await post(flat({ color: 720 }), {}, key);
  const basic = { Authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
  const detail = await fetch(`${holdover.url}/api/jobs/${body.prompt_id}`, { headers: basic });
  expect(detail.status).toBe(200);
});

test('a small limit of entries in history holds after every prompt, for each user', async () => {
  const socket = await connect(holdover.wsUrl, { clientId: 'customer' });
  const kept: string[] = [];
  for (let i = 0; i < 5; i++) {
    const { body } = await post(flat({ color: 730 + i }));
    await socket.untilDone(body.prompt_id);
    kept.push(body.prompt_id);
  }
  await expect
    .poll(async () => Object.keys(await getJson(`${holdover.url}/history`)))
    .toEqual(kept.slice(-3));
  await socket.close();
});
