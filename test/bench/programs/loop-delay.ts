// Loaded into the server under test: tells how long its event loop kept a timer waiting.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 2;
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
histogram.enable();

process.on('message', (request: { readonly reset?: boolean }) => {
  const lateMs = (nanos: number) => Math.max(0, nanos / 1e6 - RESOLUTION_MS);
  process.send?.({ p99Ms: lateMs(histogram.percentile(99)), maxMs: lateMs(histogram.max) });
  if (request.reset) histogram.reset();
});
process.channel?.unref();
