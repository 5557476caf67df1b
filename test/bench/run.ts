import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accept } from './accept.ts';
import { benchesAgainst } from './against/benches.ts';
import type { Bench } from './bench.ts';
import { bodies } from './bodies.ts';
import { download } from './download.ts';
import { engine } from './engine.ts';
import { fanout } from './fanout.ts';
import { graphs } from './graphs.ts';
import { idle } from './idle.ts';
import { latency } from './latency.ts';
import type { Row } from './measure.ts';
import { objectInfo } from './object-info.ts';
import { type BenchOptions, benchOptions } from './options.ts';
import { passthrough } from './passthrough.ts';
import { type Program, isInstalled } from './program.ts';
import { prompt } from './prompt.ts';
import { type Report, asMarkdown, asText, conditions } from './report.ts';
import { replicas } from './replicas.ts';
import { scale } from './scale.ts';
import { sse } from './sse.ts';
import { start } from './start.ts';
import { upload } from './upload.ts';

const BENCHES: readonly Bench[] = [
  passthrough,
  prompt,
  latency,
  upload,
  download,
  fanout,
  idle,
  sse,
  objectInfo,
  accept,
  engine,
  bodies,
  graphs,
  replicas,
  scale,
  start,
];

const OUTPUT = fileURLToPath(new URL('../../../../bench-output', import.meta.url));

type Run = { readonly rounds: number; readonly rows: Row[]; readonly troubles: string[] };

/** Runs one benchmark; one that fails is reported, and those after it still run. */
async function runOne(bench: Bench, { rounds, rows, troubles }: Run): Promise<void> {
  const missing = bench.needs.filter((command) => !isInstalled(command));
  if (missing.length > 0) {
    return void troubles.push(`${bench.name} did not run: ${missing.join(', ')} not installed`);
  }
  const workDir = mkdtempSync(join(OUTPUT, 'work-'));
  const programs: Program[] = [];
  try {
    const found = await bench.run({
      workDir,
      rounds,
      async keep(starting) {
        const program = await starting;
        programs.push(program);
        return program;
      },
    });
    rows.push(...found);
    process.stdout.write(asText(found));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    troubles.push(`${bench.name} broke off: ${reason}`);
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    rmSync(workDir, { recursive: true, force: true });
  }
}

async function main({ names, rounds, against }: BenchOptions): Promise<void> {
  const benches = against === undefined ? BENCHES : benchesAgainst(against);
  const unknown = names.filter((name) => !benches.some((bench) => bench.name === name));
  if (unknown.length > 0) {
    const known = benches.map(({ name }) => name).join(', ');
    throw new Error(`no such benchmark: ${unknown.join(', ')}; there are ${known}`);
  }
  mkdirSync(OUTPUT, { recursive: true });
  const rows: Row[] = [];
  const troubles: string[] = [];
  const before = conditions();
  const startedAt = performance.now();
  for (const bench of benches) {
    if (names.length > 0 && !names.includes(bench.name)) continue;
    process.stdout.write(`\n${bench.name}\n`);
    await runOne(bench, { rounds, rows, troubles });
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const report: Report = { before, after: conditions(), seconds, rounds, rows, troubles };
  writeFileSync(join(OUTPUT, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(OUTPUT, 'table.md'), asMarkdown(report));
  process.stdout.write(`\n${asMarkdown(report)}`);
  if (troubles.length > 0) process.exitCode = 1;
}

try {
  await main(benchOptions(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
