#!/usr/bin/env node
import { parseConfig } from './config/config.ts';
import { createLogger, logProcessErrors } from './observability/log.ts';
import { withoutCredentialsIn } from './protocol/url-credentials.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

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
const command = await COMMANDS.get(name)?.();
if (command) process.exit(await command(rest));

const parsed = parseConfig(name === 'serve' ? rest : process.argv.slice(2), process.env);
if (parsed.kind === 'exit') {
  (parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
  process.exit(parsed.code);
}

const log = createLogger({
  level: parsed.config.logLevel,
  tracePrompt: parsed.config.tracePrompt,
});
logProcessErrors(log);

try {
  // Help and refusals need nothing of it.
  const { startServer } = await import('./app/server.ts');
  const server = await startServer(parsed.config, log);
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ event: 'server.stopping', signal }, 'stopping');
    // A second signal of either kind means now.
    for (const other of SIGNALS)
      process.removeAllListeners(other).once(other, () => process.exit(1));
    void server.close().then(() => process.exit(0));
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  void server.lost.then((error) => {
    // Not in good order: what is still to be written belongs to nothing any more.
    log.fatal({ event: 'storage.lost', err: error }, `stopping: ${error.message}`);
    process.exit(1);
  });
  // Launch scripts wait for this line of the v1 server.
  process.stdout.write(`To see the GUI go to: ${server.url}\n`);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`error: ${withoutCredentialsIn(message)}\n`);
  log.debug({ event: 'server.start_failed', err: error }, 'the start failed');
  process.exit(1);
}
