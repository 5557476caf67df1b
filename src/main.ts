#!/usr/bin/env node
import * as nodeModule from 'node:module';

// Node 20 does not have it, nor do its types.
(nodeModule as { enableCompileCache?: () => void }).enableCompileCache?.();

/** Each is loaded only when it is asked for; without one of these names it is the server. */
const COMMANDS: ReadonlyMap<string, () => Promise<(argv: readonly string[]) => Promise<number>>> =
  new Map([
    ['backup', async () => (await import('./cli/backup.ts')).backupCommand],
    ['check', async () => (await import('./cli/check.ts')).checkCommand],
    ['convert', async () => (await import('./cli/convert.ts')).convertCommand],
    ['import', async () => (await import('./cli/import.ts')).importCommand],
    ['report', async () => (await import('./cli/report.ts')).reportCommand],
    ['restore', async () => (await import('./cli/restore.ts')).restoreCommand],
    ['trace', async () => (await import('./cli/trace.ts')).traceCommand],
    ['worker', async () => (await import('./cli/worker.ts')).workerCommand],
  ]);

const [name = '', ...rest] = process.argv.slice(2);
void run();

async function run(): Promise<void> {
  const command = await COMMANDS.get(name)?.();
  if (command) process.exit(await command(rest));
  const { serve } = await import('./cli/serve.ts');
  await serve(name === 'serve' ? rest : process.argv.slice(2));
}
