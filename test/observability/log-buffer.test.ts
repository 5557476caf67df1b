import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createLogBuffer } from '../../src/observability/log-buffer.ts';
import { silentLogger } from '../../src/observability/log.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test('long addresses of refused calls are kept no longer than they are shown', () => {
  const buffer = createLogBuffer({ now: () => 0, startLine: 'started', onEntry: () => {} });
  const log = buffer.wrap(silentLogger());
  const before = heapBytes();
  for (let i = 0; i < 3000; i++) {
    const url = Buffer.from(`/prompt/${i}?${'x'.repeat(15_000)}`).toString();
    const call = { event: 'request.answered', method: 'POST', url, status: 405, ms: 1 };
    log.info({ ...call, user: `user-${i % 10}` }, 'request answered');
  }
  expect(heapBytes() - before).toBeLessThan(15_000_000);
  expect(buffer.entries('user-9').at(-1)?.m).toBe('POST /prompt/2999 -> 405 (1 ms)\n');
});
