import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { LogPanel } from '../../src/observability/log-panel.ts';
import { silentLogger } from '../../src/observability/log.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test('long addresses of refused calls are kept no longer than they are shown', () => {
  const panel = new LogPanel({ now: () => 0, startLine: 'started', sendTo: () => {} });
  const log = panel.wrap(silentLogger());
  const before = heapBytes();
  for (let i = 0; i < 3000; i++) {
    const url = Buffer.from(`/prompt/${i}?${'x'.repeat(15_000)}`).toString();
    const call = { event: 'request.answered', method: 'POST', url, status: 405, ms: 1 };
    log.info({ ...call, user: `user-${i % 10}` }, 'request answered');
  }
  expect(heapBytes() - before).toBeLessThan(15_000_000);
  expect(panel.ownLines('user-9').at(-1)?.m).toBe('POST /prompt/2999 -> 405 (1 ms)\n');
});

test('a user has the last 300 lines, without queries; calls that only read are not among them', () => {
  const panel = new LogPanel({ now: () => 0, startLine: 'started', sendTo: () => {} });
  const log = panel.wrap(silentLogger());
  const call = { event: 'request.answered', user: 'busy', status: 200, ms: 1 };
  for (let i = 0; i < 310; i++)
    log.info({ ...call, method: 'POST', url: `/settings/s${i}?a=hidden` }, 'request answered');
  log.info({ ...call, method: 'GET', url: '/queue' }, 'request answered');
  const [start, ...lines] = panel.ownLines('busy').map(({ m }) => m);
  expect([start, lines.length, lines[0]]).toEqual([
    'started\n',
    300,
    'POST /settings/s10 -> 200 (1 ms)\n',
  ]);
  expect(lines.at(-1)).toBe('POST /settings/s309 -> 200 (1 ms)\n');
});
