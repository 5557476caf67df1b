import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { packageUrl } from '../lib/package-url.ts';
import type { DifferenceRow, TrafficEntry } from './api-types.ts';

type Call = Pick<TrafficEntry, 'method' | 'target' | 'status'>;

type Rule = {
  readonly row: string;
  readonly applies: (call: {
    readonly path: string;
    readonly query: string;
    readonly status: number;
    readonly method: string;
    readonly headers: IncomingHttpHeaders;
  }) => boolean;
};

/** When a row of docs/differences.md concerns a call: by its path, its status and its headers. */
const RULES: readonly Rule[] = [
  {
    row: 'bad-input',
    applies: ({ method, status, path }) =>
      status === 400 && method === 'POST' && !path.startsWith('/upload'),
  },
  {
    row: 'bad-upload',
    applies: ({ status, path }) => status === 400 && path.startsWith('/upload/'),
  },
  { row: 'bad-view', applies: ({ status, path }) => path === '/view' && status === 400 },
  {
    row: 'duplicate-prompt-id',
    applies: ({ status, path }) => path === '/prompt' && status === 409,
  },
  { row: 'queue-limits', applies: ({ status, path }) => path === '/prompt' && status === 503 },
  { row: 'body-limits', applies: ({ status }) => status === 413 },
  { row: 'encodings', applies: ({ status }) => status === 415 },
  {
    row: 'origin',
    applies: ({ status, headers }) => status === 403 && headers.origin !== undefined,
  },
  {
    row: 'service-trouble',
    applies: ({ status }) => status === 502 || status === 503 || status === 504,
  },
  { row: 'parallel-prompts', applies: ({ path }) => path === '/queue' },
  { row: 'history-size', applies: ({ path }) => path.startsWith('/history') },
  {
    row: 'restart',
    applies: ({ path, method }) => path.startsWith('/history') && method === 'GET',
  },
  { row: 'identical-node-meta', applies: ({ path }) => /^\/history\/./.test(path) },
  { row: 'interrupt-inside', applies: ({ path }) => path === '/interrupt' },
  { row: 'free', applies: ({ path }) => path === '/free' },
  { row: 'unknown-class', applies: ({ path }) => path.startsWith('/object_info') },
  { row: 'display-name', applies: ({ path }) => path.startsWith('/object_info') },
  {
    row: 'compression',
    applies: ({ path, headers }) =>
      path.startsWith('/object_info') && headers['accept-encoding'] !== undefined,
  },
  { row: 'system-stats', applies: ({ path }) => path === '/system_stats' },
  { row: 'models', applies: ({ path }) => /^\/(models|embeddings|experiment\/models)/.test(path) },
  { row: 'logs', applies: ({ path }) => path.startsWith('/internal/logs') },
  { row: 'userdata', applies: ({ path }) => /^\/(userdata|settings|v2\/userdata)/.test(path) },
  {
    row: 'users',
    applies: ({ path, headers }) => path === '/users' || headers['x-api-key'] !== undefined,
  },
  { row: 'newer-routes', applies: ({ path }) => /^\/(jobs|job)(\/|$)/.test(path) },
  { row: 'signed-view', applies: ({ path, status }) => path === '/view' && status === 302 },
  {
    row: 'starter-templates',
    applies: ({ path }) => /^\/(templates|workflow_templates)/.test(path),
  },
  { row: 'unsafe-names', applies: ({ path }) => path.startsWith('/upload/') },
  {
    row: 'picture-formats',
    applies: ({ path, query }) => path === '/view' && query.includes('preview'),
  },
  { row: 'secrets', applies: ({ path, method }) => path === '/prompt' && method === 'POST' },
  { row: 'id-limits', applies: ({ path, method }) => path === '/prompt' && method === 'POST' },
  {
    row: 'after-the-answer',
    applies: ({ path, method, status }) =>
      path === '/prompt' && method === 'POST' && status === 200,
  },
  { row: 'late-sockets', applies: ({ path }) => path === '/ws' },
  { row: 'keepalive', applies: ({ path }) => path === '/ws' },
  {
    row: 'no-deflate',
    applies: ({ path, headers }) =>
      path === '/ws' && headers['sec-websocket-extensions'] !== undefined,
  },
];

/** Names of all rows that a rule has.
 * @internal
 */
export const RULED_ROWS: readonly string[] = RULES.map(({ row }) => row);

/** The rows that concern a v1 call. */
export function differencesOf(call: Call, headers: IncomingHttpHeaders): readonly string[] {
  const [target = '', query = ''] = (call.target ?? '').split('?', 2);
  if (/^\/api\/v2(\/|$)/.test(target)) return [];
  const path = target.replace(/^\/api(?=\/)/, '');
  const facts = { path, query, status: call.status ?? 0, method: call.method ?? '', headers };
  return RULES.filter(({ applies }) => applies(facts)).map(({ row }) => row);
}

let rows: ReadonlyMap<string, DifferenceRow> | undefined;

/** The rows of these names, in the words of docs/differences.md. */
export function differenceRows(names: readonly string[]): readonly DifferenceRow[] {
  rows ??= readRows();
  return names.flatMap((name) => rows?.get(name) ?? []);
}

function readRows(): ReadonlyMap<string, DifferenceRow> {
  const text = readFileSync(packageUrl('docs/differences.md'), 'utf8');
  const found = text.matchAll(/^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \|$/gm);
  return new Map(
    [...found].map(([, row = '', original = '', holdover = '', why = '']) => [
      row,
      { row, original, holdover, why },
    ]),
  );
}
