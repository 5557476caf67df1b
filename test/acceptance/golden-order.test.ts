import { afterAll, beforeAll, expect, test } from 'vitest';
import { frameSummary } from '../support/golden/golden-frame-summary.ts';
import {
  type GoldenServer,
  closeEngines,
  startGoldenServer,
} from '../support/golden/golden-server.ts';
import { ownFrame } from '../support/golden/golden-normalize.ts';
import { type GoldenSocket, openGoldenSocket } from '../support/golden/golden-socket.ts';

let server: GoldenServer;
beforeAll(async () => {
  server = await startGoldenServer(['--preview-method', 'none'], new Map());
});
afterAll(async () => {
  await server.close();
  await closeEngines();
});

test('T15: a socket that takes over mid-run hears where the run is and every step the other missed', async () => {
  const url = `ws://127.0.0.1:${server.port}/ws?clientId=back`;
  const first = await openGoldenSocket(url, {});
  // Longer than v1's pause between two steps that it shows.
  const steps = { image: ['1', 0], steps: 10, delay_ms: 150, preview: false };
  const prompt = {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
    '2': { class_type: 'GoldenSteps', inputs: steps },
    '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
  };
  const body = JSON.stringify({ prompt, client_id: 'back' });
  const posted = await fetch(`http://127.0.0.1:${server.port}/prompt`, { method: 'POST', body });
  expect(posted.status).toBe(200);
  await until(first, 'P(2 3/10)');
  await first.close();
  const second = await openGoldenSocket(url, {});
  await until(second, 'X(null)');
  const ticks = [...summariesOf(first), ...summariesOf(second)].filter((summary) =>
    summary.startsWith('P(2'),
  );
  expect(ticks).toEqual(Array.from({ length: 10 }, (_, i) => `P(2 ${i + 1}/10)`));
  expect(summariesOf(second).slice(0, 2)).toEqual(['S(1)+sid', 'X(2)']);
  await second.close();
});

async function until(socket: GoldenSocket, summary: string): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (!summariesOf(socket).includes(summary)) {
    if (performance.now() > deadlineMs)
      throw new Error(`no ${summary} in ${summariesOf(socket).join(' ')}`);
    await socket.nextFrame(1000);
  }
}

function summariesOf(socket: GoldenSocket): string[] {
  return socket.frames.map((frame) => frameSummary(ownFrame(frame)));
}
