import { expect, test } from 'vitest';
import { Figures, quantileMs } from '../../src/console/figures.ts';

test('quantiles are within their bucket, by their share of it', () => {
  const buckets = [
    [0.01, 50],
    [0.1, 90],
    [1, 100],
    [Infinity, 100],
  ] as const;
  expect(quantileMs(buckets, 0.5)).toBeCloseTo(10);
  expect(quantileMs(buckets, 0.7)).toBeCloseTo(55);
  expect(quantileMs(buckets, 0.95)).toBeCloseTo(550);
  expect(quantileMs([[Infinity, 3]], 0.5)).toBe(0);
  expect(quantileMs([[0.1, 0]], 0.5)).toBeNull();
});

test('an hour is remembered, with rates between two samples', async () => {
  let ended = 0;
  let nowMs = 0;
  const figures = new Figures({
    now: () => nowMs,
    totals: async () => ({ ended, requests: new Map([[Infinity, ended * 2]]) }),
    services: {
      livePrompts: { countByState: () => ({ waiting: 1, queued: 2, running: 3, ending: 1 }) },
      prompts: { outboxDepth: () => 4 },
      hub: { count: () => 5, pendingBytes: () => 0, droppedFrames: () => 0 },
      upstream: { openStreams: () => 6 },
    },
    diskBytes: async () => 8,
  });
  for (let i = 0; i < 400; i++) {
    await figures.measure();
    ended += 5;
    nowMs += 10_000;
  }
  figures.close();
  const samples = figures.samples();
  expect(samples).toHaveLength(360);
  expect(samples.at(-1)).toMatchObject({
    queued: 3,
    running: 4,
    outbox: 4,
    sockets: 5,
    disk_bytes: 8,
    ended_per_minute: 30,
    requests_per_second: 1,
  });
});
