import { randomUUID } from 'node:crypto';
import { type Logger, pino } from 'pino';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';
import type { PortSubscriber } from './observed-port.ts';

export type { Logger } from 'pino';

/** Structured log to standard error, one JSON object a line, secrets removed. */
export function createLogger({ level }: { readonly level: string }): Logger {
  return pino(
    {
      level,
      base: null,
      serializers: { err: serializeError },
      // No line is written with a credential, whichever field or message it is in.
      hooks: { streamWrite: withoutCredentialsIn },
    },
    pino.destination({ dest: 2, sync: true }),
  );
}

/**
 * Returns the fields of an error for the log. An error of ioredis contains its command with all arguments, and a warning
 * about listeners a whole call with its headers, which are data of users: they are left out.
 * @internal
 */
export function serializeError(error: unknown): unknown {
  const fields: unknown = pino.stdSerializers.err(error as Error);
  if (typeof fields !== 'object' || fields === null) return fields;
  const { command: _, emitter: __, target: ___, ...others } = fields as Record<string, unknown>;
  return others;
}

/**
 * Logs process errors as JSON lines: warnings (deprecations of Node,
 * say) and the uncaught exception that ends the process.
 */
export function logProcessErrors(log: Logger): void {
  process.removeAllListeners('warning').on('warning', (warning) => {
    log.warn({ event: 'process.warning', err: warning }, 'Node.js warns');
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ event: 'process.uncaught_exception', err: error }, 'uncaught exception');
    process.exit(1);
  });
}

/** A log that goes nowhere, for tests and tools. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}

/** The caller's request id when it is harmless to repeat, else a new one. */
export function requestId(requested: string | undefined): string {
  return requested !== undefined && /^[\w.:-]{1,128}$/.test(requested) ? requested : randomUUID();
}

/** Lists the v2 calls of each request that is being served, for its line. */
export const listV2Calls: PortSubscriber = ({ cause, operation }) => {
  cause?.v2Calls?.push(operation);
  return undefined;
};
