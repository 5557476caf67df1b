import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { interleave, ratioRow } from './measure.ts';
import { type Program, startOurs } from './program.ts';
import { wrk } from './wrk.ts';

const CLASSES = 1800;

/** A large answer that hardly ever changes, against making it for every request. */
export const objectInfo: Bench = {
  name: 'object-info',
  needs: ['wrk'],
  async run({ workDir, rounds, keep }) {
    const file = join(workDir, 'object_info.json');
    writeFileSync(file, JSON.stringify(definitions()));
    const holdover = await keep(startHoldover({ workDir, args: ['--object-info', file] }));
    const each = await keep(startOurs('stringify', { side: 'subject', args: [file] }));
    const koa = await keep(startOurs('koa-empty', { side: 'subject' }));
    const etag = await etagOf(`${holdover.url}/object_info`);
    const load = (program: Program, headers: Readonly<Record<string, string>>, seconds = 1.5) =>
      wrk(program, {
        workDir,
        url: `${program.url}/object_info`,
        connections: 16,
        seconds: Math.ceil(seconds),
        headers,
      });
    const contestants = {
      gzip: () => load(holdover, { 'Accept-Encoding': 'gzip' }),
      unchanged: () => load(holdover, { 'Accept-Encoding': 'gzip', 'If-None-Match': etag }),
      each: () => load(each, {}),
      koa: () => load(koa, {}),
    };
    await interleave(1, contestants);
    const samples = await interleave(rounds, contestants);
    const common = { bench: 'object-info', unit: 'req/s', cpuUnit: 'µs/req' } as const;
    return [
      ratioRow({
        ...common,
        figure: '5 MB, cached gzip',
        samples: samples.gzip,
        against: { name: 'JSON.stringify for each request', samples: samples.each },
        target: { kind: 'at least', ratio: 300 },
      }),
      ratioRow({
        ...common,
        figure: '304',
        samples: samples.unchanged,
        against: { name: 'empty Koa route', samples: samples.koa },
        target: { kind: 'at least', ratio: 1 },
      }),
    ];
  },
};

async function etagOf(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { 'Accept-Encoding': 'gzip' } });
  await answer.arrayBuffer();
  return answer.headers.get('etag') ?? '';
}

/** About 5 MB of node classes; compresses better than those of real life. */
function definitions(): object {
  return Object.fromEntries(
    Array.from({ length: CLASSES }, (_, i) => [`BenchNode${i}`, classOf(i)]),
  );
}

function classOf(i: number): object {
  const names = Array.from({ length: 12 }, (_, k) => `input_of_the_class_${k}`);
  const spec = ['FLOAT', { default: i / 10, min: 0, max: 16384, step: 0.01, tooltip: TOOLTIP }];
  return {
    input: { required: Object.fromEntries(names.map((name) => [name, spec])), optional: {} },
    input_order: { required: names, optional: [] },
    output: ['IMAGE', 'MASK'],
    output_is_list: [false, false],
    output_name: ['IMAGE', 'MASK'],
    name: `BenchNode${i}`,
    display_name: `Bench Node ${i}`,
    description: 'What this class does is of no interest here.',
    python_module: 'custom_nodes.bench',
    category: 'bench/classes',
    output_node: false,
  };
}

const TOOLTIP = 'How much of it goes into the result; the middle is a good place to begin with.';
