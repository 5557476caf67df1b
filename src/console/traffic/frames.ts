import {
  type DescribedFrame,
  type SocketFrame,
  describeFrame,
} from '../../observability/described-frame.ts';
import { type Json, type JsonObject, isJsonObject, stringifyJson } from '../../protocol/json.ts';
import { type CapturedBody, bodyOf } from './captured-body.ts';
import { nodeCount } from '../node-count.ts';
import { shownPictureType } from './recorded-call.ts';

/** A frame of a socket, or an event of a stream. */
export type RecordedMessage = {
  readonly type: string;
  /** The members that tell messages of one type apart. The text may be long. */
  readonly text: string;
  readonly bytes: number;
  readonly picture?: string;
  /** The whole message. */
  readonly body: CapturedBody;
  readonly bodyType: string;
};

type RecordedFrame = RecordedMessage & {
  readonly promptId: string | undefined;
  /** The byte of the body at which its picture or text starts. */
  readonly contentStart: number;
};

/** Returns a frame as readable text and, if it has a picture, the place of the picture. */
export function frameEntry({ payload, totalBytes }: SocketFrame): RecordedFrame {
  const described = describeFrame(payload);
  const { picture, textStart, promptId } = described;
  const bytes = totalBytes ?? described.bytes;
  const wire = Buffer.from(payload);
  const body = { ...bodyOf(wire), totalBytes: bytes };
  if (picture !== undefined) return { ...pictureEntry(described, picture), body };
  if (textStart !== undefined) {
    const text = wire.toString('utf8', textStart);
    const facts = { bytes, promptId, body, bodyType: 'text/plain', contentStart: textStart };
    return { type: 'text', text, ...facts };
  }
  return {
    type: described.type ?? (described.isBinary ? 'binary' : 'text'),
    text: frameText(described.data),
    bytes,
    promptId,
    body,
    bodyType: described.isBinary ? 'application/octet-stream' : 'application/json',
    contentStart: 0,
  };
}

function pictureEntry(
  { bytes, promptId, nodeId, type }: DescribedFrame,
  { format, start }: NonNullable<DescribedFrame['picture']>,
): Omit<RecordedFrame, 'body'> {
  return {
    type: type === 'binary 1' ? 'preview' : 'preview with metadata',
    text: nodeId === undefined ? '' : `node ${nodeId}`,
    bytes,
    ...shownPictureType(format ?? ''),
    promptId,
    bodyType: format ?? 'application/octet-stream',
    contentStart: start,
  };
}

function frameText(data: JsonObject): string {
  const { node, value, max, status, nodes, exception_message: message } = data;
  if (isJsonObject(status)) {
    const info = status['exec_info'];
    const left = isJsonObject(info) ? info['queue_remaining'] : undefined;
    return `queue_remaining ${wordOf(left)}`;
  }
  const parts = [
    node === undefined ? '' : `node ${wordOf(node)}`,
    max === undefined ? '' : `${wordOf(value)} of ${wordOf(max)}`,
    isJsonObject(nodes) ? nodeCount(Object.keys(nodes).length) : '',
    Array.isArray(nodes) ? `nodes ${nodes.map(wordOf).join(', ')}` : '',
    typeof message === 'string' ? message : '',
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/**
 * Returns a value as text. Clients send any JSON, even objects whose `toString` is not a function.
 */
function wordOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : stringifyJson(value ?? null);
}
