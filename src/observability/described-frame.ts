import { FORMAT_TAG, FRAME_TYPE } from '../protocol/binary-frames.ts';
import { type JsonObject, isJsonObject, parseObject } from '../protocol/json.ts';

/** A frame of a v1 socket, without its WebSocket header. */
export type SocketFrame = {
  readonly direction: 'in' | 'out';
  readonly user: string;
  readonly sid: string;
  readonly payload: string | Buffer;
  /** Of a long frame that came in: its length. The payload is its beginning. */
  readonly totalBytes?: number;
  /** The socket watches: it is one of Holdover's own page. */
  readonly watches?: boolean;
};

/** The type of a frame, and the parts that it has. */
export type DescribedFrame = {
  readonly isBinary: boolean;
  /** `executing`, `status` …; of a binary frame `binary` and v1's number of its type. */
  readonly type: string | undefined;
  readonly promptId: string | undefined;
  readonly nodeId: string | undefined;
  readonly bytes: number;
  /** `data` of a JSON frame. */
  readonly data: JsonObject;
  /** Of a binary text frame: the byte at which its text starts. */
  readonly textStart: number | undefined;
  /** The picture of a preview: its media type, and the byte at which it starts. */
  readonly picture: { readonly format: string | undefined; readonly start: number } | undefined;
};

/** The number of the type, and that of the format or the length that follows it. */
const HEADER_BYTES = 8;

/** Reads a frame of v1, of either direction; one that is no frame of v1 has no type. */
export function describeFrame(payload: string | Buffer): DescribedFrame {
  if (typeof payload !== 'string') return describeBinary(payload);
  const message = parseObject(payload);
  const data = isJsonObject(message?.['data']) ? message['data'] : {};
  return {
    ...NOTHING,
    type: textOf(message?.['type']),
    promptId: textOf(data['prompt_id']),
    nodeId: textOf(data['node']),
    bytes: Buffer.byteLength(payload),
    data,
  };
}

const NOTHING = {
  isBinary: false,
  promptId: undefined,
  nodeId: undefined,
  data: {},
  textStart: undefined,
  picture: undefined,
} as const;

function describeBinary(payload: Buffer): DescribedFrame {
  const { length: bytes } = payload;
  const kind = bytes >= 4 ? payload.readUInt32BE(0) : undefined;
  const type = kind === undefined ? undefined : `binary ${kind}`;
  const base = { ...NOTHING, isBinary: true, type, bytes };
  if (bytes < HEADER_BYTES) return base;
  const number = payload.readUInt32BE(4);
  if (kind === FRAME_TYPE.previewImage) {
    const format = Object.entries(FORMAT_TAG).find(([, tag]) => tag === number)?.[0];
    return { ...base, picture: { format, start: HEADER_BYTES } };
  }
  const head = payload.toString('utf8', HEADER_BYTES, HEADER_BYTES + number);
  const start = HEADER_BYTES + number;
  if (kind === FRAME_TYPE.text) return { ...base, nodeId: head, textStart: start };
  if (kind !== FRAME_TYPE.previewImageWithMetadata) return base;
  const metadata = parseObject(head);
  return {
    ...base,
    promptId: textOf(metadata?.['prompt_id']),
    nodeId: textOf(metadata?.['node_id']),
    picture: { format: textOf(metadata?.['image_type']), start },
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
