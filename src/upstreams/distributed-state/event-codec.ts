import type { JobEvent } from '../../protocol/job-api.ts';
import { parseJson, stringifyJson } from '../../protocol/json.ts';

/** The position of an event: the worker's fence, then a number without gaps. */
export type StreamPosition = { readonly fence: number; readonly n: number };

/**
 * A published message of a job: an event, which is in its stream too, or a preview, which is not.
 */
export type PublishedEvent =
  | { readonly kind: 'event'; readonly position: StreamPosition; readonly event: JobEvent }
  | { readonly kind: 'preview'; readonly event: PreviewEvent };

type PreviewEvent = Extract<JobEvent, { event: 'preview' }>;

const LINE_END = 0x0a;

export function encodeEvent(event: Exclude<JobEvent, { event: 'preview' }>): string {
  return stringifyJson(event);
}

export function decodeEvent(text: string): JobEvent {
  return parseJson(text) as unknown as JobEvent;
}

/** A line of JSON, then the bytes of the picture. */
export function encodePreview({ data: { bytes, ...head } }: PreviewEvent): Buffer {
  return Buffer.concat([Buffer.from(`${stringifyJson(head)}\n`), bytes]);
}

function decodePreview(message: Buffer): PreviewEvent {
  const end = message.indexOf(LINE_END);
  const head = parseJson(message.toString('utf8', 0, end)) as Omit<PreviewEvent['data'], 'bytes'>;
  return { event: 'preview', data: { ...head, bytes: message.subarray(end + 1) } };
}

export function decodePublished(message: Buffer): PublishedEvent {
  if (message[0] === 'p'.charCodeAt(0)) {
    return { kind: 'preview', event: decodePreview(message.subarray(1)) };
  }
  const end = message.indexOf(LINE_END);
  const position = decodePosition(message.toString('utf8', 1, end));
  return { kind: 'event', position, event: decodeEvent(message.toString('utf8', end + 1)) };
}

export function decodePosition(id: string): StreamPosition {
  const [fence = 0, n = 0] = id.split('-').map(Number);
  return { fence, n };
}

export function isAfter(one: StreamPosition, other: StreamPosition): boolean {
  return one.fence > other.fence || (one.fence === other.fence && one.n > other.n);
}
