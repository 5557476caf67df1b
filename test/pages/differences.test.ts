import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROWS, differencesOf } from '../../page/inspector/differences.ts';
import type { TrafficDetail, TrafficEntry } from '../../src/console/api-types.ts';

type Seen = Partial<TrafficEntry> & {
  readonly sent?: object;
  readonly cut?: boolean;
  readonly headers?: object;
};

/** The rows named for a call or a frame, without the one that every call has. */
function rowsOf(
  { sent, cut = false, headers = {}, ...entry }: Seen,
  isRemote = false,
): readonly string[] {
  const body = { content_type: 'application/json', bytes: 9, is_cut: cut, note: null };
  const detail = {
    entry: { kind: 'call', api: 'v1', method: 'GET', status: 200, ...entry } as TrafficEntry,
    request_headers: Object.entries(headers),
    response_headers: [['deprecation', '@1787270400']],
    request: sent === undefined ? null : { ...body, text: JSON.stringify(sent) },
    response: null,
  } as TrafficDetail;
  return differencesOf(detail, isRemote).filter((row) => row !== 'deprecation-headers');
}

const FRAME = { kind: 'frame', direction: 'out' } as const;
const PROMPT = { method: 'POST', target: '/prompt' };

test('every row that the inspector can name is one of the page of differences', () => {
  const page = readFileSync(new URL('../../docs/differences.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, row]) => row);
  expect(rows).toEqual(expect.arrayContaining(Object.keys(ROWS)));
});

test.each<[Seen, readonly string[]]>([
  [{ ...PROMPT, sent: { client_id: 'one' } }, []],
  [{ ...PROMPT, sent: { prompt: {} } }, ['no-client-id']],
  [
    { ...PROMPT, sent: { client_id: 'one', extra_data: { api_key_comfy_org: '[removed]' } } },
    ['secrets'],
  ],
  [{ ...PROMPT, sent: { client_id: 'one', prompt_id: 'mine' } }, ['id-limits']],
  [{ target: '/api/view?filename=a.png', status: 302 }, ['signed-view']],
  [{ ...PROMPT, cut: true, sent: { prompt: {} } }, []],
  [{ target: '/view?filename=a.png', headers: { 'x-api-key': '[removed]' } }, ['pixels']],
  [{ target: '/users' }, ['users']],
  [{ target: '/userdata/a.json' }, ['userdata']],
  [{ target: '/assets/index-Cx1.js' }, []],
  [{ target: '/api/assets?limit=2' }, ['asset-records']],
  [{ target: '/nothing', status: 404 }, []],
  [{ target: '/api/v2/jobs', api: 'v2' }, []],
  [
    { target: '/api/queue', method: 'POST', headers: { 'x-api-key': '[removed]' } },
    ['hosted-queue'],
  ],
  [{ ...FRAME, type: 'executing' }, []],
  [{ ...FRAME, type: 'execution_interrupted' }, ['cancelled-before-start']],
])('%o', (seen, rows) => expect(rowsOf(seen)).toEqual(rows));

test('in front of a service', () => {
  expect(rowsOf({ ...FRAME, type: 'execution_cached' }, true)).toEqual(['unknown-cache']);
});
