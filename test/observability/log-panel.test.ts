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

test('long addresses of unknown routes are kept no longer than they are shown', () => {
  const panel = new LogPanel({ now: () => 0, startLine: 'started', sendTo: () => {} });
  const log = panel.wrap(silentLogger());
  const before = heapBytes();
  for (let i = 0; i < 3000; i++) {
    const path = Buffer.from(`/${i}/${'x'.repeat(15_000)}`).toString();
    log.info({ event: 'route.unknown', method: 'GET', path, user: `user-${i % 10}` }, 'unknown');
  }
  expect(heapBytes() - before).toBeLessThan(15_000_000);
  expect(panel.ownLines('user-9').at(-1)?.m).toMatch(/^GET \/2999\/x{980,994}\n$/);
});

test('a user has the last 300 lines; of the calls, only accepted prompts are among them', () => {
  const panel = new LogPanel({ now: () => 0, startLine: 'started', sendTo: () => {} });
  const log = panel.wrap(silentLogger());
  const call = { event: 'request.answered', user: 'busy', method: 'POST', status: 200, ms: 1 };
  for (let i = 0; i < 310; i++) log.warn({ event: 'cancel.failed', user: 'busy' }, `line ${i}`);
  log.info({ ...call, url: '/api/prompt?token=hidden' }, 'request answered');
  for (const other of [
    { url: '/settings/a' },
    { url: '/prompt', status: 400 },
    { url: '/prompt', method: 'GET' },
  ])
    log.info({ ...call, ...other }, 'request answered');
  const [start, ...lines] = panel.ownLines('busy').map(({ m }) => m);
  expect([start, lines.length, lines[0]]).toEqual(['started\n', 300, 'WARN: line 11\n']);
  expect(lines.slice(-2)).toEqual(['WARN: line 309\n', 'got prompt\n']);
});
