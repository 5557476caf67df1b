#!/usr/bin/env node
import { parseConfig } from './config.ts';
import { startServer } from './server.ts';
import { createLogger } from './telemetry.ts';

const parsed = parseConfig(process.argv.slice(2), process.env);
if (parsed.kind === 'exit') {
  (parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
  process.exit(parsed.code);
}

const log = createLogger({ level: parsed.config.logLevel });
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'uncaught exception');
  process.exit(1);
});

try {
  const server = await startServer(parsed.config, log);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'stopping');
      // The second signal means now.
      process.once(signal, () => process.exit(1));
      void server.close().then(() => process.exit(0));
    });
  }
  // Launch scripts wait for this line of the v1 server.
  process.stdout.write(`To see the GUI go to: ${server.url}\n`);
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  log.debug({ err: error }, 'start failed');
  process.exit(1);
}
