import { expect, test } from 'vitest';
import { bodyOf } from '../../src/console/traffic/captured-body.ts';
import { frameEntry } from '../../src/console/traffic/frames.ts';
import { harPieces } from '../../src/console/traffic/har.ts';
import { TrafficStore } from '../../src/console/traffic-store.ts';
import { previewFrame } from '../../src/protocol/binary-frames.ts';

const AT_MS = Date.UTC(2026, 0, 2);
const ONE = { user: 'one', isAll: false };
const BASE = { at_ms: AT_MS, ms: 5, prompt_id: null, job_id: null, cause_id: null } as const;
const OPTIONS = {
  version: '1.0',
  base: 'https://example.org/prefix',
  upstreamBase: 'https://service.example',
  showText: (text: string) => text,
  toJson: JSON.stringify,
};

const json = (value: unknown) => bodyOf(Buffer.from(JSON.stringify(value)));

function open() {
  const store = new TrafficStore({ now: () => AT_MS });
  store.hold(ONE);
  const frame = (payload: string | Buffer, direction: 'in' | 'out', sid = 'c') => {
    const { body, bodyType, contentStart, type, picture } = frameEntry({ payload });
    const side =
      direction === 'in'
        ? { request: body, requestType: bodyType }
        : { response: body, responseType: bodyType };
    const entry = { ...BASE, kind: 'frame', direction, sid, type } as const;
    return store.add({
      user: 'one',
      contentStart,
      ...side,
      entry: { ...entry, ...(picture !== undefined && { picture }) },
    });
  };
  const har = () => {
    const archive = JSON.parse([...harPieces(store.list(ONE), OPTIONS)].join('')) as {
      log: Record<string, any> & { entries: any[] };
    };
    store.close();
    return archive.log;
  };
  return { store, frame, har };
}

test('is an archive of version 1.2 with all that its schema requires', () => {
  const { store, har } = open();
  store.add({
    user: 'one',
    requestHeaders: [['content-type', 'application/json']],
    responseHeaders: [['location', '/x']],
    request: json({ a: 1 }),
    requestType: 'application/json',
    response: json({ b: 2 }),
    responseType: 'application/json',
    entry: { ...BASE, kind: 'call', method: 'POST', target: '/prompt?a=1', status: 302 },
  });
  const { version, creator, pages, entries } = har();
  expect({ version, creator, pages }).toEqual({
    version: '1.2',
    creator: { name: 'Holdover', version: '1.0' },
    pages: [],
  });
  expect(entries).toEqual([
    {
      startedDateTime: '2026-01-02T00:00:00.000Z',
      time: 5,
      request: {
        method: 'POST',
        url: 'https://example.org/prefix/prompt?a=1',
        httpVersion: 'HTTP/1.1',
        cookies: [],
        headers: [{ name: 'content-type', value: 'application/json' }],
        queryString: [{ name: 'a', value: '1' }],
        headersSize: -1,
        bodySize: 0,
        postData: { mimeType: 'application/json', text: '{"a":1}' },
      },
      response: {
        status: 302,
        statusText: 'Found',
        httpVersion: 'HTTP/1.1',
        cookies: [],
        headers: [{ name: 'location', value: '/x' }],
        content: { size: 0, mimeType: 'application/json', text: '{"b":2}' },
        redirectURL: '/x',
        headersSize: -1,
        bodySize: 0,
      },
      cache: {},
      timings: { send: 0, wait: 5, receive: 0 },
      _resourceType: 'fetch',
    },
  ]);
});

test('has the frames of a socket as Chromium writes them, binary ones whole', () => {
  const { store, frame, har } = open();
  const picture = previewFrame(Buffer.from('ffd8ff00', 'hex'), 'image/jpeg');
  frame('{"type":"status","data":{}}', 'out', 'opened-before');
  store.add({
    user: 'one',
    entry: { ...BASE, kind: 'call', method: 'GET', target: '/ws', status: 101, client_id: 'c' },
  });
  frame('{"type":"feature_flags","data":{}}', 'in');
  frame(picture, 'out');
  const { entries } = har();
  const messages = entries.map(({ _resourceType: type, _webSocketMessages: list }) => [type, list]);
  const time = AT_MS / 1000;
  expect(messages).toEqual([
    ['websocket', [{ type: 'receive', time, opcode: 1, data: '{"type":"status","data":{}}' }]],
    [
      'websocket',
      [
        { type: 'send', time, opcode: 1, data: '{"type":"feature_flags","data":{}}' },
        { type: 'receive', time, opcode: 2, data: picture.toString('base64') },
      ],
    ],
  ]);
});

test('has v2 calls at the service they went to, and the events of a stream as its body', () => {
  const { store, har } = open();
  const stream = store.add({
    user: 'one',
    entry: {
      ...BASE,
      kind: 'v2_call',
      method: 'GET',
      job_id: 'job-1',
      status: 200,
      target: '/api/v2/jobs/{id}/events',
    },
  });
  const event = { ...BASE, kind: 'v2_event', type: 'status', cause_id: stream.entry.id } as const;
  store.add({
    user: 'one',
    response: json({ status: 'running' }),
    responseType: 'application/json',
    entry: event,
  });
  const [entry] = har().entries;
  expect(entry.request.url).toBe('https://service.example/api/v2/jobs/job-1/events');
  expect(entry.comment).toBe('v2 call that Holdover made');
  expect(entry.response.content).toEqual({
    size: 42,
    mimeType: 'text/event-stream',
    text: 'event: status\ndata: {"status":"running"}\n\n',
  });
});
