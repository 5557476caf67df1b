/** What lines of the log carry; only the members named here are ever shown to a client. */
export type LogFields = {
  readonly user?: unknown;
  readonly method?: unknown;
  readonly url?: unknown;
  readonly path?: unknown;
  readonly status?: unknown;
  readonly ms?: unknown;
  readonly promptId?: unknown;
};

const MAX_CHARS = 1000;

/**
 * Whether a line is of interest to a client. Pollers come many times a second: what only reads, and
 * succeeds, would push out everything else.
 */
export function isShownToClients({ method, url, status }: LogFields, message: string): boolean {
  if (message !== 'request answered') return true;
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
  // What is missing is told once, as unknown.
  if (isRead && (Number(status) < 400 || status === 404)) return false;
  return !String(url).startsWith('/internal/logs');
}

/** A line of the log in words a client may see. */
export function lineText(level: string, fields: LogFields, message: string): string {
  if (message === 'request answered') return callText(fields);
  if (message === 'prompt executed') {
    return `Prompt executed in ${(Number(fields.ms) / 1000).toFixed(2)} seconds`;
  }
  if (message === 'unknown route')
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
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_CHARS);
}
