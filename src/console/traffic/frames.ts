import type { SocketFrame } from '../../observability/traffic-log.ts';
import { type JsonObject, isJsonObject, parseJson } from '../../protocol/json.ts';
import { type CapturedBody, bodyOf } from './captured-body.ts';

type DescribedFrame = {
  readonly type: string;
  readonly text: string;
  readonly bytes: number;
  readonly picture?: string;
  readonly promptId: string | undefined;
  readonly body: CapturedBody;
  readonly bodyType: string;
};

const MAX_TEXT_CHARS = 160;
/** Binary frames of v1, by the number that they begin with. */
const PREVIEW = 1;
const TEXT = 3;
const PREVIEW_WITH_METADATA = 4;
const FORMATS: { readonly [number: number]: string } = { 1: 'image/jpeg', 2: 'image/png' };

/** A frame in words; of one with a picture, the picture itself. */
export function describeFrame({ payload }: SocketFrame): DescribedFrame {
  if (typeof payload !== 'string') return describeBinary(payload);
  const message = objectIn(payload);
  const data = isJsonObject(message?.['data']) ? message['data'] : {};
  return {
    type: textOf(message?.['type']) ?? 'text',
    text: frameText(data),
    bytes: Buffer.byteLength(payload),
    promptId: textOf(data['prompt_id']),
    body: bodyOf(Buffer.from(payload)),
    bodyType: 'application/json',
  };
}

function describeBinary(payload: Buffer): DescribedFrame {
  const kind = payload.length >= 8 ? payload.readUInt32BE(0) : 0;
  const number = payload.length >= 8 ? payload.readUInt32BE(4) : 0;
  const { length: bytes } = payload;
  if (kind === PREVIEW) {
    return pictureFrame(payload.subarray(8), {
      bytes,
      format: FORMATS[number],
      metadata: undefined,
    });
  }
  if (kind === PREVIEW_WITH_METADATA) {
    const metadata = objectIn(payload.toString('utf8', 8, 8 + number));
    const format = textOf(metadata?.['image_type']);
    return pictureFrame(payload.subarray(8 + number), { bytes, format, metadata });
  }
  const text = kind === TEXT ? payload.toString('utf8', 8 + number) : '';
  return {
    type: kind === TEXT ? 'text' : `binary ${kind}`,
    text: text.slice(0, MAX_TEXT_CHARS),
    bytes,
    promptId: undefined,
    body: bodyOf(kind === TEXT ? Buffer.from(text) : payload),
    bodyType: kind === TEXT ? 'text/plain' : 'application/octet-stream',
  };
}

function pictureFrame(
  picture: Buffer,
  frame: {
    readonly bytes: number;
    readonly format: string | undefined;
    readonly metadata: JsonObject | undefined;
  },
): DescribedFrame {
  const { bytes, format, metadata } = frame;
  const isShown = format === 'image/jpeg' || format === 'image/png';
  const node = textOf(metadata?.['node_id']);
  return {
    type: metadata === undefined ? 'preview' : 'preview with metadata',
    text: node === undefined ? '' : `node ${node}`,
    bytes,
    ...(isShown && { picture: format }),
    promptId: textOf(metadata?.['prompt_id']),
    body: bodyOf(picture),
    bodyType: format ?? 'application/octet-stream',
  };
}

/** The members that tell frames of one type apart. */
function frameText(data: JsonObject): string {
  const { node, value, max, status, nodes, exception_message: message } = data;
  if (isJsonObject(status)) {
    const info = status['exec_info'];
    const left = isJsonObject(info) ? info['queue_remaining'] : undefined;
    return `queue_remaining ${String(left as number)}`;
  }
  const parts = [
    node === undefined ? '' : `node ${node === null ? 'null' : String(node as string)}`,
    max === undefined ? '' : `${String(value as number)} of ${String(max as number)}`,
    isJsonObject(nodes) ? `${Object.keys(nodes).length} nodes` : '',
    Array.isArray(nodes) ? `nodes ${nodes.join(', ')}` : '',
    typeof message === 'string' ? message : '',
  ];
  return parts
    .filter((part) => part !== '')
    .join(' · ')
    .slice(0, MAX_TEXT_CHARS);
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
