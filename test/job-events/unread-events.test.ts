import { describe, expect, test } from 'vitest';
import type { JobEvent } from '../../src/protocol/job-api.ts';
import { UnreadEvents } from '../../src/job-events/unread-events.ts';
import { words } from '../support/app/jobs.ts';

const node = (node_id: string): JobEvent => ({
  event: 'x_node',
  data: { node_id, phase: 'started' },
});
const progress = (nodes_done: number): JobEvent => ({
  event: 'progress',
  data: { value: 0, nodes_done, nodes_total: 9 },
});
function read(unread: UnreadEvents): JobEvent[] {
  const events: JobEvent[] = [];
  for (let event = unread.shift(); event; event = unread.shift()) events.push(event);
  return events;
}

describe('events a reader has not taken', () => {
  test('of a reader far behind: the latest progress, every node', () => {
    const unread = new UnreadEvents();
    const count = 5000;
    for (let i = 0; i < count; i++)
      for (const event of [progress(i), node(String(i))]) unread.push(event);
    const events = read(unread);
    expect(events.filter(({ event }) => event === 'x_node')).toHaveLength(count);
    expect(events.filter(({ event }) => event === 'progress').length).toBeLessThan(1001);
    expect(words(events.slice(-2))).toEqual([
      `progress ${count - 1}/9 - -`,
      `started ${count - 1}`,
    ]);
  });

  test('are too much by their number or by their bytes', () => {
    const many = new UnreadEvents();
    for (let i = 0; i < 40_000; i++) many.push(node(String(i)));
    expect(many.isOverLimit()).toBe(false);
    for (let i = 0; i < 20_000; i++) many.push(node(String(i)));
    expect(many.isOverLimit()).toBe(true);
    const heavy = new UnreadEvents();
    const ui = { text: ['x'.repeat(1024 * 1024)] };
    for (let i = 0; i < 70; i++)
      heavy.push({ event: 'x_node', data: { node_id: 'n', phase: 'finished', ui } });
    expect(heavy.isOverLimit()).toBe(true);
    heavy.clear();
    expect(heavy.isOverLimit()).toBe(false);
  });
});
