import { parseConfig } from '../config/config.ts';
import { createLogger, logProcessErrors } from '../observability/log.ts';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';
import { stopSignal } from './stop-signal.ts';

/** Runs the server until a signal or an error ends the process. */
export async function serve(argv: readonly string[]): Promise<void> {
  const parsed = parseConfig(argv, process.env);
  if (parsed.kind === 'exit') {
    (parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
    process.exit(parsed.code);
  }

  const log = createLogger({ level: parsed.config.logLevel });
  logProcessErrors(log);

  try {
    // Loaded late: help and invalid flags do not need it.
    const { startServer } = await import('../app/server.ts');
    const server = await startServer(parsed.config, log);
    void stopSignal().then(async (signal) => {
      log.info({ event: 'server.stopping', signal }, 'stopping');
      await server.close();
      process.exit(0);
    });
    void server.lost.then((error) => {
      // Do not close the server: the storage that it would write to is lost.
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
}
