import {
  type NodeGCPerformanceDetail,
  type PerformanceEntry,
  PerformanceObserver,
  constants,
} from 'node:perf_hooks';
import { expect, test, vi } from 'vitest';
import { collectAfterStart } from '../../src/lib/collect-after-start.ts';

test('collects everything once, soon after the start', async () => {
  const major: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as PerformanceEntry & { detail: NodeGCPerformanceDetail })
        .detail;
      const isForced = (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0;
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR && isForced) major.push(kind);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    collectAfterStart();
    vi.advanceTimersByTime(60_000);
  } finally {
    vi.useRealTimers();
  }
  await vi.waitFor(() => expect(major).toHaveLength(1));
  observer.disconnect();
  expect(globalThis.gc).toBeUndefined();
});
