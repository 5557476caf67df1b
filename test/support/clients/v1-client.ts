import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A received frame: JSON as parsed (with its text), or bytes. */
export type Received =
  | { readonly kind: 'text'; readonly text: string; readonly type: string; readonly data: any }
  | { readonly kind: 'binary'; readonly bytes: Buffer };

/** A recorder on `/ws`, as blunt as a v1 script. */
export type Recorder = {
  readonly socket: WebSocket;
  readonly frames: Received[];
  /** Resolves once a frame satisfies the test; looks at past frames too. */
  until(test: (frame: Received) => boolean, timeoutMs?: number): Promise<Received>;
  /** v1's end of a prompt: `executing` with node null. */
  untilDone(promptId: string, timeoutMs?: number): Promise<void>;
  /** Message types in order, `executing:3`, `executed:9`, `binary:1` …, of one prompt or of all. */
  outline(promptId?: string): string[];
  send(message: unknown): void;
  close(): Promise<void>;
};

export async function connect(
  wsUrl: string,
  options: {
    clientId?: string | null;
    headers?: Record<string, string>;
    query?: string;
    path?: string;
  } = {},
): Promise<Recorder> {
  const { clientId = 'test-client', headers = {}, query = '', path = '/ws' } = options;
  const id = clientId === null ? '' : `clientId=${encodeURIComponent(clientId)}`;
  const socket = new WebSocket(`${wsUrl}${path}?${[id, query].filter(Boolean).join('&')}`, {
    headers,
  });
  const frames: Received[] = [];
  const waiters = new Set<() => void>();
  socket.on('message', (data: Buffer, isBinary) => {
    frames.push(isBinary ? { kind: 'binary', bytes: data } : textFrame(data.toString()));
    for (const wake of waiters) wake();
  });
  const failed = once(socket, 'unexpected-response').then(([, response]) => {
    throw new Error(`upgrade refused: ${response.statusCode}`);
  });
  await Promise.race([once(socket, 'open'), failed]);
  failed.catch(() => {});

  const until: Recorder['until'] = (test, timeoutMs = 20_000) =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = frames.find(test);
        if (!found) return;
        clearTimeout(timer);
        waiters.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        waiters.delete(look);
        reject(new Error(`no such frame; got ${outline(frames).join(' ')}`));
      }, timeoutMs);
      waiters.add(look);
      look();
    });
  return {
    socket,
    frames,
    until,
    async untilDone(promptId, timeoutMs) {
      await until(
        (f) =>
          f.kind === 'text' &&
          f.type === 'executing' &&
          f.data.node === null &&
          f.data.prompt_id === promptId,
        timeoutMs,
      );
    },
    outline: (promptId) =>
      outline(
        frames.filter(
          (f) => promptId === undefined || f.kind === 'binary' || f.data.prompt_id === promptId,
        ),
      ),
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      socket.close();
      await once(socket, 'close');
    },
  };
}

/** `POST /prompt`; the answer whatever its status. */
export async function postPrompt(
  url: string,
  body: unknown,
  options: { headers?: Record<string, string>; path?: string } = {},
): Promise<{ status: number; body: any }> {
  const response = await fetch(`${url}${options.path ?? '/prompt'}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...options.headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

export async function getJson(url: string, headers: Record<string, string> = {}): Promise<any> {
  const response = await fetch(url, { headers });
  return response.json();
}

function textFrame(text: string): Received {
  const { type, data } = JSON.parse(text);
  return { kind: 'text', text, type, data };
}

function outline(frames: readonly Received[]): string[] {
  return frames.map((frame) => {
    if (frame.kind === 'binary') return `binary:${frame.bytes.readUInt32BE(0)}`;
    if (frame.type === 'status') return `status:${frame.data.status.exec_info.queue_remaining}`;
    if (frame.type === 'executing' || frame.type === 'executed')
      return `${frame.type}:${frame.data.node}`;
    if (frame.type === 'progress') return `progress:${frame.data.value}/${frame.data.max}`;
    return frame.type;
  });
}
