import { ROOT, readJson, storedKey } from './server.ts';

const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export type SocketMessage = {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** True for a message that comes many times in a run; the last `executing` names no node. */
export function isStep({ type, data }: SocketMessage): boolean {
  if (type === 'executing') return data['node'] !== null;
  return type === 'progress' || type === 'progress_state';
}

export type SocketHandlers = {
  /** Before each connection; `false`: the server wants a key, nothing is tried until `restart`. */
  prepare(): Promise<boolean>;
  onOpen(): void;
  onLost(retryInMs: number): void;
  onStopped(): void;
  onMessage(message: SocketMessage): void;
  /** `picture` makes the picture of the frame. */
  onPicture(promptId: string | undefined, picture: () => Blob): void;
};

/** A watching WebSocket. A lost one is opened again, after longer and longer pauses. */
export class WatchingSocket {
  readonly #handlers: SocketHandlers;
  #failures = 0;
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #socket: WebSocket | undefined;

  constructor(handlers: SocketHandlers) {
    this.#handlers = handlers;
    addEventListener('online', () => {
      if (this.#socket?.readyState !== WebSocket.OPEN) this.restart();
    });
    this.restart();
  }

  restart(): void {
    void this.#connect();
  }

  async #connect(): Promise<void> {
    clearTimeout(this.#timer);
    const current = ++this.#attempt;
    this.#socket?.close();
    this.#socket = undefined;
    try {
      const mayConnect = await this.#handlers.prepare();
      if (current !== this.#attempt) return;
      if (mayConnect) this.#open(current);
      else this.#handlers.onStopped();
    } catch {
      if (current === this.#attempt) this.#retry();
    }
  }

  #open(current: number): void {
    const handlers = this.#handlers;
    const opened = openSocket({ watch: '1' });
    this.#socket = opened;
    opened.onopen = () => {
      this.#failures = 0;
      // Pictures then name their prompt.
      opened.send(
        JSON.stringify({ type: 'feature_flags', data: { supports_preview_metadata: true } }),
      );
      handlers.onOpen();
    };
    opened.onmessage = ({ data }) => {
      if (current !== this.#attempt) return;
      if (typeof data !== 'string') return readPicture(data as ArrayBuffer, handlers.onPicture);
      const message = readJson(data) as SocketMessage | undefined;
      if (typeof message?.type === 'string') handlers.onMessage(message);
    };
    opened.onclose = () => current === this.#attempt && this.#retry();
  }

  #retry(): void {
    const longestMs = Math.min(LONGEST_WAIT_MS, SHORTEST_WAIT_MS * 2 ** this.#failures++);
    // Not all pages at the same moment.
    const retryInMs = longestMs * (0.75 + Math.random() / 4);
    this.#timer = setTimeout(() => this.restart(), retryInMs);
    this.#handlers.onLost(retryInMs);
  }
}

/** Opens `/ws` with this query; a browser cannot send a header with it. */
export function openSocket(query: Readonly<Record<string, string>>): WebSocket {
  const url = new URL('ws', ROOT);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const key = storedKey();
  url.search = String(new URLSearchParams({ ...query, ...(key !== null && { token: key }) }));
  const socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  return socket;
}

/** A picture frame of v1: type 1 names a format, type 4 carries JSON. */
const PREVIEW = 1;
const PREVIEW_WITH_METADATA = 4;
const FORMATS: Readonly<Record<number, string>> = { 1: 'image/jpeg', 2: 'image/png' };

function readPicture(buffer: ArrayBuffer, onPicture: SocketHandlers['onPicture']): void {
  if (buffer.byteLength < 8) return;
  const view = new DataView(buffer);
  const kind = view.getUint32(0);
  if (kind === PREVIEW) {
    const type = FORMATS[view.getUint32(4)];
    if (type !== undefined) onPicture(undefined, () => blobOf(buffer, 8, type));
  } else if (kind === PREVIEW_WITH_METADATA) {
    const end = 8 + view.getUint32(4);
    const text = new TextDecoder().decode(buffer.slice(8, end));
    const about = readJson(text) as { image_type?: string; prompt_id?: string } | undefined;
    const type = Object.values(FORMATS).find((known) => known === about?.image_type);
    if (type !== undefined) onPicture(about?.prompt_id, () => blobOf(buffer, end, type));
  }
}

function blobOf(buffer: ArrayBuffer, start: number, type: string): Blob {
  return new Blob([new Uint8Array(buffer, start)], { type });
}
