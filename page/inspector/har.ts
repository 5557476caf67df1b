import type { TrafficDetail } from '../../src/console/api-types.ts';
import { getJson } from '../lib/server.ts';
import { type NamedEntry, entryQuery } from './store.ts';

/** The lines as an HTTP archive (HAR 1.2). Frames are in the members that browsers use for sockets. */
export async function harOf(
  entries: readonly NamedEntry[],
  base: string,
  version: string,
): Promise<string> {
  const calls = entries.filter(({ kind }) => kind === 'call' || kind === 'v2_call');
  const made: object[] = [];
  for (const entry of calls) {
    const detail = await getJson<TrafficDetail>(
      `holdover/api/traffic/entry?${entryQuery(entry)}`,
    ).catch(() => undefined);
    const isSocket = entry.status === 101;
    const messages = isSocket ? messagesOf(entry, entries) : undefined;
    made.push({
      ...harEntry(entry, detail, base),
      ...(messages && { _resourceType: 'websocket', _webSocketMessages: messages }),
    });
  }
  const creator = { name: 'Holdover', version };
  return JSON.stringify({ log: { version: '1.2', creator, pages: [], entries: made } }, null, 1);
}

function harEntry(entry: NamedEntry, detail: TrafficDetail | undefined, base: string): object {
  const url = base + (entry.target ?? '');
  const headers = (list: TrafficDetail['request_headers'] = []) =>
    list.map(([name, value]) => ({ name, value }));
  const query = [...new URL(url).searchParams].map(([name, value]) => ({ name, value }));
  const request = detail?.request ?? null;
  const response = detail?.response ?? null;
  return {
    startedDateTime: new Date(entry.at_ms).toISOString(),
    time: entry.ms ?? 0,
    request: {
      method: entry.method,
      url,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: headers(detail?.request_headers),
      queryString: query,
      headersSize: -1,
      bodySize: entry.request_bytes ?? 0,
      ...(request && { postData: { mimeType: request.content_type, text: request.text ?? '' } }),
    },
    response: {
      status: entry.status ?? 0,
      statusText: '',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: headers(detail?.response_headers),
      content: {
        size: entry.response_bytes ?? 0,
        mimeType: response?.content_type ?? '',
        ...(typeof response?.text === 'string' && { text: response.text }),
      },
      redirectURL: '',
      headersSize: -1,
      bodySize: entry.response_bytes ?? 0,
    },
    cache: {},
    timings: { send: 0, wait: entry.ms ?? 0, receive: 0 },
    ...(entry.kind === 'v2_call' && { comment: 'v2 call that Holdover made' }),
  };
}

function messagesOf(
  { client_id: clientId }: NamedEntry,
  entries: readonly NamedEntry[],
): readonly object[] {
  return entries
    .filter(({ kind, sid }) => kind === 'frame' && sid === clientId)
    .map(({ direction, at_ms: atMs, type, text, picture }) => ({
      type: direction === 'in' ? 'send' : 'receive',
      time: atMs / 1000,
      opcode: picture === undefined ? 1 : 2,
      data: picture === undefined ? JSON.stringify({ type, text }) : '',
    }));
}
