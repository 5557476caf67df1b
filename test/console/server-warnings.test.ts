import { expect, test } from 'vitest';
import { type WarningSources, warningsOf } from '../../src/console/server-warnings.ts';

const NOW_MS = Date.UTC(2026, 0, 2);
const NOTHING: WarningSources = {
  config: {
    deprecationSettings: { brownouts: [] },
    engine: { concurrency: 1 },
    dataDir: '',
  } as never,
  nowMs: NOW_MS,
  upstream: 'embedded',
  isHealthy: true,
  limits: [],
  outbox: 0,
  workers: null,
  discovered: undefined,
};
const FOUND = { listing: 'yes', ignoresCancel: false, changesIds: false } as const;
const limit = (name: string, flag: string, used: number) =>
  ({ name, flag, used, limit: 100, unit: 'count' }) as const;

test.each([
  [{}, []],
  [{ isHealthy: false }, ['upstream_unhealthy']],
  [
    { workers: 0, config: { ...NOTHING.config, engine: { concurrency: 0 } } as never },
    ['no_worker'],
  ],
  [{ workers: 2, config: { ...NOTHING.config, engine: { concurrency: 0 } } as never }, []],
  [{ limits: [limit('Stored files', '--disk-budget', 84)] }, []],
  [{ limits: [limit('Stored files', '--disk-budget', 85)] }, ['limit_near']],
  [{ limits: [{ ...limit('Outbox', '', 0), limit: 0 }] }, []],
  [{ outbox: 3 }, ['outbox']],
  [{ discovered: FOUND }, []],
  [{ discovered: { ...FOUND, listing: 'unknown' } }, []],
  [{ discovered: { ...FOUND, listing: 'no' } }, ['no_job_list']],
  [{ discovered: { ...FOUND, changesIds: true } }, ['no_state_dir']],
  [{ discovered: { ...FOUND, ignoresCancel: true } }, ['cancel_ignored']],
] as const)('%j: %j', (sources, codes) => {
  const warnings = warningsOf({ ...NOTHING, ...sources });
  expect(warnings.map(({ code }) => code)).toEqual(codes);
  for (const { text, action } of warnings) expect(text && action).toMatch(/\.$/);
});

test.each([
  [-2, -1, []],
  [-1, 1, ['A brownout of v1 is on until 2026-01-02T00:00:00.001Z.']],
  [1, 2, [expect.stringContaining('planned from 2026-01-02T00:00:00.001Z')]],
] as const)('a brownout from %d to %d ms from now: %j', (from, to, texts) => {
  const brownouts = [{ fromMs: NOW_MS + from, toMs: NOW_MS + to }];
  const config = { ...NOTHING.config, deprecationSettings: { brownouts } as never };
  expect(warningsOf({ ...NOTHING, config }).map(({ text }) => text)).toEqual(texts);
});
