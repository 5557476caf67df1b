import { expect, test } from 'vitest';
import { StopRequest } from '../../src/upstreams/stop-request.ts';

test('the first request counts, and each listener gets it once', () => {
  const stop = new StopRequest<'canceled' | 'timeout'>();
  const heard: string[] = [];
  stop.onRequest((reason) => heard.push(`a ${reason}`));
  stop.onRequest((reason) => heard.push(`b ${reason}`));
  expect(stop.reason).toBeUndefined();
  stop.request('canceled');
  stop.request('timeout');
  expect(stop.reason).toBe('canceled');
  expect(heard).toEqual(['a canceled', 'b canceled']);
});

test('a listener that comes late is called at once; one that is taken back, never', () => {
  const stop = new StopRequest<'canceled'>();
  const heard: string[] = [];
  stop.onRequest(() => heard.push('kept'));
  stop.onRequest(() => heard.push('taken back'))();
  stop.request('canceled');
  stop.onRequest(() => heard.push('late'));
  expect(heard).toEqual(['kept', 'late']);
});
