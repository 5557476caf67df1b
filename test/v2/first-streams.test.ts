import { expect, test } from 'vitest';
import { EarlyEvents } from '../../src/v2/early-events.ts';
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
  await new EarlyEvents(jobs, clock).open(ANNA, 'a');
  await clock.advance(1999);
  expect(jobs.held()).toBe(2);
  await clock.advance(1);
  await expect.poll(jobs.held).toBe(0);
});

test('events go once to a client, and once to a Holdover in between', async () => {
  const jobs = lazily();
  const clock = createFakeClock();
  const streams = new EarlyEvents(jobs, clock);
  await streams.open(ANNA, 'a');
  const readers = ['client', 'holdover'] as const;
  const ends = [new AbortController(), new AbortController()];
  const take = (reader: (typeof readers)[number], { signal } = new AbortController()) =>
    streams.take(ANNA, { jobId: 'a', reader }, signal);
  const taken = readers.map((reader, i) => take(reader, ends[i]));
  expect(readers.map((reader) => take(reader))).toEqual([undefined, undefined]);
  for (const [reader, events] of taken.entries()) {
    const received: string[] = [];
    for await (const { event } of events ?? []) {
      received.push(event);
      ends[reader]?.abort();
    }
    expect(received).toEqual(['status']);
  }
  expect([jobs.held(), clock.sleeping()]).toEqual([0, 0]);
});

test('events for a second reader that never comes are released', async () => {
  const jobs = lazily();
  const clock = createFakeClock();
  const streams = new EarlyEvents(jobs, clock);
  await streams.open(ANNA, 'a');
  const end = new AbortController();
  const events = streams.take(ANNA, { jobId: 'a', reader: 'client' }, end.signal);
  await clock.advance(2000);
  await expect.poll(jobs.held).toBe(1);
  end.abort();
  for await (const event of events ?? []) void event;
  expect(jobs.held()).toBe(0);
});
