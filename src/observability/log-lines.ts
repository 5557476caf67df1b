import { textStart } from './text-start.ts';
import type { Logger } from './log.ts';

const LEVELS = ['info', 'warn', 'error', 'fatal'] as const;
const MAX_CHARS = 1000;

/**
 * Returns the same log. `onLine` also gets the lines of interest to the user that their field
 * `user` names, in words a client may see.
 */
export function withUserLines(log: Logger, onLine: (user: string, text: string) => void): Logger {
  const wrapped = Object.create(log) as Logger;
  for (const level of LEVELS)
    wrapped[level] = (given: unknown, message?: string) => {
      const fields = typeof given === 'object' && given !== null ? (given as LogFields) : {};
      if (typeof fields.user === 'string' && isShownToClients(fields))
        onLine(fields.user, lineText(level, fields, message ?? String(given)));
      log[level](given, message);
    };
  return wrapped;
}

/** Fields of a log line that may be shown to a client; no other field ever is. */
type LogFields = Partial<
  Record<'event' | 'user' | 'method' | 'url' | 'path' | 'status' | 'ms' | 'promptId', unknown>
>;

/** The terminal of v1 shows no calls but accepted prompts. */
function isShownToClients({ event, method, url, status }: LogFields): boolean {
  if (event !== 'request.answered') return true;
  return method === 'POST' && status === 200 && /^(\/api)?\/prompt(\?|$)/.test(String(url));
}

/** A line of the log in words a client may see. */
function lineText(level: string, fields: LogFields, message: string): string {
  // Watchers of the v1 server's log wait for these words.
  if (fields.event === 'request.answered') return 'got prompt';
  if (fields.event === 'prompt.finished') {
    return `Prompt executed in ${(Number(fields.ms) / 1000).toFixed(2)} seconds`;
  }
  if (fields.event === 'route.unknown')
    return withoutControlCharacters(`${String(fields.method)} ${String(fields.path)}: unknown`);
  const promptSuffix = typeof fields.promptId === 'string' ? ` (prompt ${fields.promptId})` : '';
  return withoutControlCharacters(
    `${level === 'info' ? '' : `${level.toUpperCase()}: `}${message}${promptSuffix}`,
  );
}

function withoutControlCharacters(text: string): string {
  return textStart(text.replaceAll(/\p{Cc}/gu, ' '), MAX_CHARS);
}
