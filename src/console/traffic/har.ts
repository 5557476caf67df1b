import { STATUS_CODES } from 'node:http';
import { addTo } from '../../translate/graph.ts';
import type { TrafficBody } from '../api-types.ts';
import type { RecordedEntry } from '../traffic-store.ts';
import { type CapturedBody, bytesOf, isCut } from './captured-body.ts';
import { shownBody } from './shown-body.ts';
import type { ShowText } from './shown-text.ts';

type HarOptions = {
  readonly showText: ShowText;
  /** Writes an entry as JSON, without the secrets that are known by now. */
  readonly toJson: (entry: object) => string;
  /** The base address of the server. */
  readonly base: string;
  /** The base address of the service that runs the jobs; of the server itself if it runs them. */
  readonly upstreamBase: string;
};

/** All entries, with those that belong to a call: events of a stream, frames of a socket. */
type Recording = {
  readonly calls: readonly RecordedEntry[];
  readonly framesOf: (call: RecordedEntry) => readonly RecordedEntry[];
  readonly eventsOf: (call: RecordedEntry) => readonly RecordedEntry[];
};

/**
 * Writes the recorded traffic as an HTTP archive (HAR 1.2), one call at a time. The frames of a
 * socket are in `_webSocketMessages`, as Chromium writes them. The v2 calls follow the v1 calls
 * that they were made for. The events of a stream are the body of its call.
 */
export function* harPieces(
  entries: readonly RecordedEntry[],
  { version, ...options }: HarOptions & { readonly version: string },
): Generator<string> {
  const recording = recordingOf(entries);
  yield `{"log":{"version":"1.2","creator":${JSON.stringify({ name: 'Holdover', version })},"pages":[],"entries":[`;
  let separator = '\n';
  for (const call of recording.calls) {
    yield separator + options.toJson(harEntry(call, recording, options));
    separator = ',\n';
  }
  yield '\n]}}';
}

function recordingOf(entries: readonly RecordedEntry[]): Recording {
  const calls = entries.filter(({ entry: { kind } }) => kind === 'call' || kind === 'v2_call');
  const sockets = calls.filter(({ entry }) => entry.status === 101);
  const events = grouped(
    entries.filter(({ entry }) => entry.kind === 'v2_event'),
    ({ entry }) => entry.cause_id,
  );
  const frames = entries.filter(({ entry }) => entry.kind === 'frame');
  const bySocket = grouped(frames, (frame) => socketOf(frame, sockets));
  const unopened = grouped(bySocket.get(undefined) ?? [], socketName);
  const earlier = [...unopened.values()].flatMap(([first]) => first ?? []).map(openedBefore);
  return {
    calls: [...earlier, ...calls].toSorted((a, b) => a.entry.at_ms - b.entry.at_ms),
    framesOf: (call) =>
      bySocket.get(call) ?? (earlier.includes(call) ? (unopened.get(socketName(call)) ?? []) : []),
    eventsOf: ({ entry }) => events.get(entry.id) ?? [],
  };
}

function grouped<K>(
  entries: readonly RecordedEntry[],
  keyOf: (entry: RecordedEntry) => K,
): ReadonlyMap<K, readonly RecordedEntry[]> {
  const groups = new Map<K, RecordedEntry[]>();
  for (const entry of entries) addTo(groups, keyOf(entry), entry);
  return groups;
}

/** Returns the last call that opened a socket of this id before the frame. */
function socketOf(
  { user, entry }: RecordedEntry,
  sockets: readonly RecordedEntry[],
): RecordedEntry | undefined {
  return sockets.findLast(
    (socket) =>
      socket.user === user && socket.entry.client_id === entry.sid && socket.entry.id < entry.id,
  );
}

function socketName({ user, entry }: RecordedEntry): string {
  return `${user} ${entry.sid}`;
}

/** Returns a call for a socket that was opened before the recording began, or without an id. */
function openedBefore({ user, entry }: RecordedEntry): RecordedEntry {
  const { at_ms: atMs, sid = '' } = entry;
  return {
    user,
    entry: {
      id: 0,
      revision: 0,
      kind: 'call',
      at_ms: atMs,
      ms: 0,
      cause_id: null,
      prompt_id: null,
      job_id: null,
      method: 'GET',
      status: 101,
      sid,
      target: `/ws?clientId=${encodeURIComponent(sid)}`,
    },
  };
}

function harEntry(recorded: RecordedEntry, recording: Recording, options: HarOptions): object {
  const { entry, requestHeaders = [], responseHeaders = [] } = recorded;
  const { method = '', status = 0, ms } = entry;
  const url = addressOf(recorded, options);
  const request = shownBody(recorded, 'request', options.showText);
  const frames = status === 101 ? recording.framesOf(recorded) : undefined;
  return {
    startedDateTime: new Date(entry.at_ms).toISOString(),
    time: ms ?? 0,
    request: {
      method,
      url: url.href,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: pairs(requestHeaders),
      queryString: pairs([...url.searchParams]),
      headersSize: -1,
      bodySize: entry.request_bytes ?? 0,
      ...(request && { postData: { mimeType: request.content_type, text: request.text ?? '' } }),
    },
    response: {
      status,
      statusText: STATUS_CODES[status] ?? '',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: pairs(responseHeaders),
      content: contentOf(recorded, recording, options.showText),
      redirectURL: responseHeaders.find(([name]) => name === 'location')?.[1] ?? '',
      headersSize: -1,
      bodySize: entry.response_bytes ?? 0,
    },
    cache: {},
    timings: { send: 0, wait: ms ?? 0, receive: 0 },
    _resourceType: frames === undefined ? 'fetch' : 'websocket',
    ...(frames && {
      _webSocketMessages: frames.map((frame) => webSocketMessage(frame, options.showText)),
    }),
    ...commentOf(recorded),
  };
}

/**
 * Returns the address of a call. For a v2 call the address of its job is known, for other calls the
 * pattern.
 */
function addressOf({ entry }: RecordedEntry, { base, upstreamBase }: HarOptions): URL {
  const { kind, target = '', job_id: jobId } = entry;
  const isJob = kind === 'v2_call' && target.startsWith('/api/v2/jobs/');
  const path = isJob && jobId !== null ? target.replace('{id}', jobId) : target;
  const origin = (kind === 'v2_call' ? upstreamBase : base).replace(/\/$/, '');
  // `OPTIONS *` has no path.
  return new URL(path.startsWith('/') ? origin + path : `${origin}/`);
}

function commentOf({ entry }: RecordedEntry): { readonly comment?: string } {
  if (entry.kind === 'v2_call') return { comment: 'v2 call that Holdover made' };
  const rows = entry.differences ?? [];
  return rows.length === 0 ? {} : { comment: `differs from the original: ${rows.join(', ')}` };
}

function pairs(list: readonly (readonly [string, string])[]) {
  return list.map(([name, value]) => ({ name, value }));
}

function contentOf(recorded: RecordedEntry, { eventsOf }: Recording, showText: ShowText): object {
  const { responseType, entry } = recorded;
  const events = eventsOf(recorded);
  if (events.length > 0) {
    const text = events.map((event) => eventText(event, showText)).join('');
    return { size: Buffer.byteLength(text), mimeType: 'text/event-stream', text };
  }
  const size = entry.response_bytes ?? 0;
  const mimeType = responseType ?? '';
  const shown = shownBody(recorded, 'response', showText);
  if (typeof shown?.text === 'string') return { size, mimeType, text: shown.text, ...cutOf(shown) };
  const picture = entry.picture === undefined ? undefined : pictureIn(recorded, showText);
  if (picture === undefined) return { size, mimeType };
  return { size, mimeType, text: picture.toString('base64'), encoding: 'base64' };
}

function cutOf({ is_cut: isCutOff }: TrafficBody): { readonly comment?: string } {
  return isCutOff ? { comment: 'Only the beginning of the body was recorded.' } : {};
}

/** Returns an event as a stream sends it. */
function eventText(event: RecordedEntry, showText: ShowText): string {
  const { entry, responseType } = event;
  const shown = shownBody(event, 'response', showText);
  const data = shown?.text ?? JSON.stringify({ content_type: responseType, bytes: entry.bytes });
  return `event: ${entry.type}\ndata: ${data}\n\n`;
}

/** Returns one frame as Chromium exports it. Binary frames are complete, as Base64. */
function webSocketMessage(frame: RecordedEntry, showText: ShowText): object {
  const { entry, requestType, responseType } = frame;
  const base = {
    type: entry.direction === 'in' ? 'send' : 'receive',
    time: entry.at_ms / 1000,
  };
  const shown = shownBody(frame, entry.direction === 'in' ? 'request' : 'response', showText);
  const isText = (requestType ?? responseType) === 'application/json';
  if (isText) return { ...base, opcode: 1, data: shown?.text ?? '' };
  return { ...base, opcode: 2, data: binaryData(frame.request ?? frame.response, shown, showText) };
}

/**
 * Returns the data of a binary frame. One with a key in it is left out, since its length would not
 * be right.
 */
function binaryData(
  body: CapturedBody | undefined,
  shown: TrafficBody | null,
  showText: ShowText,
): string {
  if (body === undefined || isCut(body)) return '';
  const bytes = bytesOf(body);
  const text = shown?.text ?? null;
  const isClean = text === null || bytes.includes(text);
  return isClean && hasNoKey(bytes, showText) ? bytes.toString('base64') : '';
}

/**
 * Returns the picture in an entry; `undefined` when only its beginning was recorded, or its bytes contain a key.
 */
export function pictureIn(recorded: RecordedEntry, showText: ShowText): Buffer | undefined {
  const { contentStart = 0 } = recorded;
  const body = recorded.response ?? recorded.request;
  if (recorded.entry.picture === undefined || body === undefined || isCut(body)) return undefined;
  const bytes = bytesOf(body);
  return hasNoKey(bytes, showText) ? bytes.subarray(contentStart) : undefined;
}

/** Returns true when no text in a picture has a key. Pictures carry the graph that made them. */
function hasNoKey(bytes: Buffer, showText: ShowText): boolean {
  const text = bytes.toString('latin1');
  return showText(text) === text;
}
