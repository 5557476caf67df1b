import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bench, type Checkout, checkoutAt, commitOf } from './bench.ts';
import { download } from './download.ts';
import { THIS_CHECKOUT } from './holdover.ts';
import { idle } from './idle.ts';
import { type Row, compare } from './measure.ts';
import { benchOptions } from './options.ts';
import { type Program, isInstalled } from './program.ts';
import { prompts, warmPrompts } from './prompts.ts';
import { asMarkdown, cellsOf, load, machine } from './report.ts';
import { accepted, passed } from './small-calls.ts';
import { start } from './start.ts';
import { upload } from './upload.ts';

const BENCHES: readonly Bench[] = [
  prompts('embedded'),
  prompts('relayed'),
  warmPrompts,
  accepted,
  passed,
  upload,
  download,
  idle,
  start,
];

const OUTPUT = fileURLToPath(new URL('../../../../bench-output', import.meta.url));

type Run = { readonly rounds: number; readonly checkout?: Checkout };

/** A command that is missing, and whatever goes wrong, is thrown. */
async function runOne(bench: Bench, { rounds, checkout }: Run): Promise<readonly Row[]> {
  const missing = bench.needs.filter((command) => !isInstalled(command));
  if (missing.length > 0) throw new Error(`${missing.join(', ')} not installed`);
  const workDir = mkdtempSync(join(OUTPUT, 'work-'));
  const programs: Program[] = [];
  const keep = async (starting: Promise<Program>) => {
    const program = await starting;
    programs.push(program);
    return program;
  };
  try {
    const contestants = await bench.prepare({ workDir, keep, ...(checkout && { checkout }) });
    const reference = checkout?.commit ?? bench.program ?? '';
    return await compare(contestants, { bench: bench.name, reference, rounds });
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    rmSync(workDir, { recursive: true, force: true });
  }
}

/** Those of these names that have a reference. */
function chosen(names: readonly string[], checkout: Checkout | undefined): readonly Bench[] {
  const possible = BENCHES.filter(({ program }) => checkout ?? program);
  const unknown = names.filter((name) => !possible.some((bench) => bench.name === name));
  if (unknown.length > 0) {
    const known = possible.map(({ name }) => name).join(', ');
    throw new Error(`no such bench: ${unknown.join(', ')}; there are ${known}`);
  }
  return possible.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** A bench that fails is reported, and those after it still run. */
async function main(argv: readonly string[]): Promise<void> {
  const { names, rounds, against } = benchOptions(argv);
  const checkout = against === undefined ? undefined : checkoutAt(against);
  const benches = chosen(names, checkout);
  mkdirSync(OUTPUT, { recursive: true });
  const rows: Row[] = [];
  const troubles: string[] = [];
  const before = load();
  for (const bench of benches) {
    try {
      const found = await runOne(bench, { rounds, ...(checkout && { checkout }) });
      rows.push(...found);
      process.stdout.write(found.map((row) => `${cellsOf(row).join(' | ')}\n`).join(''));
    } catch (error) {
      troubles.push(`${bench.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const report = {
    at: new Date().toISOString(),
    commit: commitOf(THIS_CHECKOUT),
    machine: machine(),
    rounds,
    seconds: Math.round(performance.now() / 1000),
    load: [before, load()],
    rows,
    troubles,
  };
  writeFileSync(join(OUTPUT, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(OUTPUT, 'table.md'), asMarkdown(report));
  process.stdout.write(`\n${asMarkdown(report)}`);
  if (troubles.length > 0) process.exitCode = 1;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
