import { expect, test } from 'vitest';
import { createEarlyEvents } from '../../src/v2/early-events.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { type JobEvent, ok } from '../../src/protocol/job-api.ts';

const ANNA = { user: 'anna' };

/** Events that let go of their source when they are read to their end, and not before. */
function lazily() {
  let opened = 0;
  let ended = 0;
  return {
    held: () => opened - ended,
    events: async (_caller: object, _jobId: string, signal: AbortSignal) => {
      opened++;
      async function* read(): AsyncGenerator<JobEvent> {
        try {
          yield { event: 'status', data: { status: 'running' } };
          while (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10));
        } finally {
          ended++;
        }
      }
      return ok(read());
    },
  };
}

test('events without a reader are released', async () => {
  const jobs = lazily();
  const clock = createFakeClock();
  await createEarlyEvents(jobs, clock).open(ANNA, 'a');
  await clock.advance(1999);
  expect(jobs.held()).toBe(1);
  await clock.advance(1);
  await expect.poll(jobs.held).toBe(0);
});

test('events with a reader go to that reader', async () => {
  const jobs = lazily();
  const streams = createEarlyEvents(jobs);
  await streams.open(ANNA, 'a');
  const deprecation = new AbortController();
  const events = streams.take(ANNA, 'a', deprecation.signal);
  expect(streams.take(ANNA, 'a', deprecation.signal)).toBeUndefined();
  const heard: string[] = [];
  for await (const { event } of events ?? []) {
    heard.push(event);
    deprecation.abort();
  }
  expect(heard).toEqual(['status']);
  expect(jobs.held()).toBe(0);
});
