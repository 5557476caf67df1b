// `npm run soak -- --minutes M --upstream NAME`: everything at once on each upstream.
// Accounts must add up, and a process may hold at the end what it held
// after a third of the load. Not in CI.
import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Footprint, footprint } from '../support/processes/invariants.ts';
import { accountingErrors } from './accounting.ts';
import { readFlags } from './flags.ts';
import { startSoakTopology } from './topology.ts';
import { type Load, type Size, openLoad } from './load.ts';
import { type MemoryVerdict, judge } from './memory-verdict.ts';
import { type Watch, watch } from './watch.ts';

const MINUTE_MS = 60_000;
const { minutes, upstreams } = readFlags(JSON.parse(process.env['SOAK_FLAGS'] ?? '[]'));
const SIZE: Size = {
  jobs: Math.ceil(200 * minutes),
  sockets: 200,
  users: 20,
  spreadMs: minutes * MINUTE_MS,
  // A machine that is too slow takes longer; it does not hold more at the end than before.
  atOnce: 40,
  patienceMs: 3 * MINUTE_MS,
};
const REPORTS = new URL('../../test-output/soak/', import.meta.url).pathname;
/** Idle connections live for 120 seconds. */
const CALM_MS = 140_000;
/** Four files are the event loop of the thread that draws, which starts with the first picture. */
const LEFT = { files: 7, sockets: 8 } as const;

test.each(upstreams)(
  `${SIZE.jobs} prompts, 200 sockets, uploads and slow readers: %s`,
  async (upstream) => {
    const topology = await startSoakTopology(upstream);
    try {
      const base = mapOf(topology.processes, footprint);
      const load = await openLoad(topology.front, SIZE);
      const watches = mapOf(topology.processes, watch);
      await load.run();
      for (const one of Object.values(watches)) one.stop();
      const verdicts = mapOf(watches, ({ samples }, name) => judge(name, samples, load.warmAtMs()));
      const accounts = await accountingErrors(topology.front, load, SIZE.jobs);
      load.close();
      await delay(CALM_MS);
      const left = mapOf(topology.processes, footprint);
      const problems = [
        ...accounts,
        ...Object.values(verdicts).flatMap((verdict) => verdict.problems),
        ...(wereSlow(Object.values(watches)) ? [] : ['no reader was slow']),
        ...remains({ base, left }),
      ];
      report(upstream, { load, verdicts, watches, base, left, problems });
      expect(problems).toEqual([]);
    } finally {
      await topology.dispose();
    }
  },
  (60 + 6 * minutes) * MINUTE_MS,
);

type Named<T> = Readonly<Record<string, T>>;

function mapOf<T, U>(named: Named<T>, act: (value: T, name: string) => U): Named<U> {
  return Object.fromEntries(Object.entries(named).map(([name, one]) => [name, act(one, name)]));
}

/** True when a reader was so slow that the server dropped previews. */
function wereSlow(watches: readonly Watch[]): boolean {
  return watches.some(({ samples }) => samples.some(({ droppedFrames }) => droppedFrames > 0));
}

/** The processes that hold more files or sockets than before, once all clients have gone. */
function remains(seen: { base: Named<Footprint>; left: Named<Footprint> }): string[] {
  return Object.entries(seen.left).flatMap(([name, { files, sockets }]) => {
    const before = seen.base[name];
    const isMore =
      before === undefined ||
      files > before.files + LEFT.files ||
      sockets > before.sockets + LEFT.sockets;
    return isMore ? [`${name}: ${files} files and ${sockets} sockets are left open`] : [];
  });
}

function report(
  upstream: string,
  run: {
    load: Load;
    verdicts: Named<MemoryVerdict>;
    watches: Named<Watch>;
    base: Named<Footprint>;
    left: Named<Footprint>;
    problems: readonly string[];
  },
): void {
  const { load, verdicts, watches, base, left, problems } = run;
  const previews = load.countingSockets.reduce(
    (sum, countingSocket) => sum + countingSocket.previews(),
    0,
  );
  const samples = mapOf(watches, (one) => one.samples);
  const figures = {
    upstream,
    size: SIZE,
    accepted: load.sent.length,
    previews,
    verdicts,
  };
  mkdirSync(REPORTS, { recursive: true });
  const written = { ...figures, base, left, problems, node: process.version, samples };
  writeFileSync(`${REPORTS}${upstream}.json`, JSON.stringify(written, undefined, 1));
  console.log(`\n${upstream}: ${load.sent.length} prompts, ${previews} previews heard`);
  console.table(
    Object.entries(verdicts).flatMap(([process, { first, last }]) => [
      { process, when: 'after a third of the load', ...first },
      { process, when: 'at the end of the load', ...last },
      { process, when: 'when all have gone', ...shown(left[process]) },
    ]),
  );
  for (const problem of problems) console.log(`- ${problem}`);
}

function shown(seen: Footprint | undefined): object {
  const rssMb = Math.round((seen?.rssBytes ?? Number.NaN) / 1024 / 102.4) / 10;
  return { rssMb, files: seen?.files, sockets: seen?.sockets };
}
