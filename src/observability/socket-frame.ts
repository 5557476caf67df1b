import { isJsonObject, parseJson } from '../protocol/json.ts';

/** A frame of a v1 socket, without its WebSocket header. */
export type SocketFrame = {
  readonly direction: 'in' | 'out';
  readonly user: string;
  readonly sid: string;
  readonly payload: string | Buffer;
};

export type DescribedFrame = {
  readonly isBinary: boolean;
  /** `executing`, `status` …; of a binary frame v1's number of its type. */
  readonly type: string | undefined;
  readonly promptId: string | undefined;
  readonly text: string | undefined;
  readonly bytes: number;
};

const MAX_TEXT_CHARS = 2000;
/** Binary frame of a preview with metadata: its JSON follows, after its length. */
const PREVIEW_WITH_METADATA = 4;

/** The parts of a frame that are worth a line of the log. */
export function describeFrame({ payload }: SocketFrame): DescribedFrame {
  if (typeof payload !== 'string') return describeBinary(payload);
  const message = objectIn(payload);
  const data = isJsonObject(message?.['data']) ? message['data'] : {};
  return {
    isBinary: false,
    type: textOf(message?.['type']),
    promptId: textOf(data['prompt_id']),
    text: payload.slice(0, MAX_TEXT_CHARS),
    bytes: Buffer.byteLength(payload),
  };
}

function describeBinary(payload: Buffer): DescribedFrame {
  const type = payload.length >= 4 ? payload.readUInt32BE(0) : undefined;
  const metadata =
    type === PREVIEW_WITH_METADATA && payload.length >= 8
      ? objectIn(payload.toString('utf8', 8, 8 + payload.readUInt32BE(4)))
      : undefined;
  return {
    isBinary: true,
    type: type === undefined ? undefined : `binary ${type}`,
    promptId: textOf(metadata?.['prompt_id']),
    text: undefined,
    bytes: payload.length,
  };
}

function objectIn(text: string) {
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
