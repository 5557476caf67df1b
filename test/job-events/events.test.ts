import { expect, test } from 'vitest';
import { JobFeed } from '../../src/job-events/job-feed.ts';
import type { JobEvent } from '../../src/protocol/job-api.ts';
import { words } from '../support/app/jobs.ts';

const NEVER = new AbortController().signal;

const preview = (byte: number): JobEvent => ({
  event: 'preview',
  data: {
    node_id: String(byte),
    content_type: 'image/jpeg',
    bytes: Uint8Array.of(byte),
    x_with_step: true,
  },
});
const text = (node_id: string): JobEvent => ({ event: 'x_text', data: { node_id, text: '' } });
const progress = (nodes_done: number): JobEvent => ({
  event: 'progress',
  data: { value: nodes_done / 3, nodes_done, nodes_total: 3 },
});

async function read(stream: AsyncIterable<JobEvent>): Promise<readonly JobEvent[]> {
  const events: JobEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

test('a late listener gets status, latest progress and latest preview, which belongs to no step any more', async () => {
  const feed = new JobFeed({ status: 'queued' });
  for (const event of [progress(1), preview(1), preview(2), progress(2), text('a')])
    feed.emit(event);
  const stream = feed.subscribe(NEVER);
  feed.end();
  const events = await read(stream);
  expect(words(events)).toEqual(['status queued', 'progress 2/3 - -', 'preview 2']);
  expect(events[2]?.data).not.toHaveProperty('x_with_step');
});

test('a subscriber that is too far behind ends with the events that it holds', async () => {
  const feed = new JobFeed();
  const events = feed.subscribe(new AbortController().signal);
  const text = 'x'.repeat(2 ** 20);
  for (let i = 0; i < 80; i++) feed.emit({ event: 'x_text', data: { node_id: '1', text } });
  let received = 0;
  for await (const { event } of events) received += Number(event === 'x_text');
  expect(received).toBe(64);
});
