// `npm run crash -- --kills N --each N --seed S --topology NAME` (embedded, redis, bucket or remote): kills -9
// at random moments and at every named crash point, under a mixed load; first each part (or `--parts A,B`) alone,
// `--each` times. Not in CI: `crash.test.ts` is the short one.
import { mkdirSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readFlags } from './options.ts';
import { tableOf } from './report.ts';
import { type CrashReport, crash } from './run.ts';

const HOURS_MS = 6 * 60 * 60_000;
const OUTPUT = new URL('../../test-output/crash/', import.meta.url).pathname;
/** How the kills are shared out when all are asked for. */
const SHARE = { embedded: 0.35, redis: 0.2, bucket: 0.25, remote: 0.2 } as const;

const { kills, killsOfEach, parts, seed, topologies } = readFlags(
  JSON.parse(process.env['CRASH_FLAGS'] ?? '[]'),
);

test(
  `${kills} kills of any part, and ${killsOfEach} of each, with the seed ${seed}`,
  async () => {
    console.log(`seed ${seed}`);
    const reports: CrashReport[] = [];
    for (const topology of topologies) {
      const share = topologies.length === 1 ? 1 : SHARE[topology];
      const onRound = (report: CrashReport) => {
        console.log(`\n${tableOf([report])}\n\n${report.account.troubles.join('\n')}`);
      };
      const ofAny = Math.ceil(kills * share);
      const logs = `${OUTPUT}${topology}`;
      const counts = { kills: ofAny, killsOfEach, parts };
      reports.push(await crash({ topology, seed, ...counts, logs, onRound }));
    }
    const troubles = reports.flatMap(({ topology, account }) =>
      account.troubles.map((trouble) => `${topology}: ${trouble}`),
    );
    mkdirSync(OUTPUT, { recursive: true });
    writeFileSync(`${OUTPUT}report.json`, JSON.stringify({ seed, reports }, undefined, 1));
    console.log(`\n${tableOf(reports)}\n\nseed ${seed}\n${troubles.join('\n')}`);
    expect(troubles).toEqual([]);
  },
  HOURS_MS,
);
