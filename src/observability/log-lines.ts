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
      const { user } = fields;
      if (typeof user === 'string' && isShownToClients(fields))
        onLine(user, lineText(level, fields, message ?? String(given)));
      log[level](given, message);
    };
  return wrapped;
}

/** Fields of a log line that may be shown to a client; no other field ever is. */
type LogFields = Partial<
  Record<'event' | 'user' | 'method' | 'url' | 'path' | 'status' | 'ms' | 'promptId', unknown>
>;

/**
 * True when a line is of interest to a client. Pollers call many times a second: calls that only read and
 * succeed would push out everything else.
 */
function isShownToClients({ event, method, url, status }: LogFields): boolean {
  if (event !== 'request.answered') return true;
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
  // An unknown route has its own line, logged once.
  if (isRead && (Number(status) < 400 || status === 404)) return false;
  return !String(url).startsWith('/internal/logs');
}

/** A line of the log in words a client may see. */
function lineText(level: string, fields: LogFields, message: string): string {
  if (fields.event === 'request.answered') return callText(fields);
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

function callText({ method, url, status, ms }: LogFields): string {
  const path = String(url).split('?', 1)[0] ?? '';
  // Watchers of the v1 server's log wait for these words.
  if (/^(\/api)?\/prompt$/.test(path) && status === 200) return 'got prompt';
  return withoutControlCharacters(
    `${String(method)} ${path} -> ${String(status)} (${String(ms)} ms)`,
  );
}

function withoutControlCharacters(text: string): string {
  return textStart(text.replaceAll(/\p{Cc}/gu, ' '), MAX_CHARS);
}
