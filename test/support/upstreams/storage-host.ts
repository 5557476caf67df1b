import { once } from 'node:events';
import { type IncomingHttpHeaders, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Visit = { readonly path: string; readonly headers: IncomingHttpHeaders };

/** One request of a file, with the means to answer it badly. */
export type Visitor = Visit & {
  readonly res: ServerResponse;
  /** Answers as a correct host does. */
  readonly honestly: () => void;
};

/** An upstream's file storage: a link to a file is enough to read it. */
export type StorageHost = {
  readonly url: string;
  readonly visits: Visit[];
  /** Its files, by path. */
  readonly files: Map<string, Buffer>;
  /** The next requests are answered by these, one each; later ones correctly. */
  once(...answers: ((visitor: Visitor) => void)[]): void;
  always(answer: ((visitor: Visitor) => void) | undefined): void;
  /** Forgets what was asked of it and what it was told. */
  reset(): void;
  close(): Promise<void>;
};

export async function openStorageHost(): Promise<StorageHost> {
  const visits: Visit[] = [];
  const files = new Map<string, Buffer>();
  let queue: ((visitor: Visitor) => void)[] = [];
  let standing: ((visitor: Visitor) => void) | undefined;
  const server = createServer((req, res) => {
    const visit = { path: req.url ?? '', headers: req.headers };
    visits.push(visit);
    const honestly = () => sendFile(res, { ...visit, bytes: files.get(visit.path.split('?')[0]!) });
    (queue.shift() ?? standing ?? honestly)({ ...visit, res, honestly });
  });
  server.on('connection', (socket) => socket.on('error', () => {}));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    visits,
    files,
    once: (...answers) => void queue.push(...answers),
    always: (answer) => void (standing = answer),
    reset() {
      visits.length = 0;
      queue = [];
      standing = undefined;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Breaks off with a reset once so many bytes of a correct answer are out. */
export function breakAfter(bytes: number): (visitor: Visitor) => void {
  return ({ res, honestly }) => {
    res.end = ((body: Buffer) => {
      res.write(body.subarray(0, bytes), () => setTimeout(() => res.socket?.resetAndDestroy(), 20));
      return res;
    }) as typeof res.end;
    honestly();
  };
}

/** The correct answer to a request of a file, as storage services give it: with ranges and an ETag. */
export function sendFile(
  res: ServerResponse,
  asked: { readonly headers: IncomingHttpHeaders; readonly bytes: Buffer | undefined },
): void {
  const { headers, bytes } = asked;
  if (!bytes) return void res.writeHead(404).end('<Error>NoSuchKey</Error>');
  const total = bytes.length;
  const etag = etagOf(bytes);
  const condition = headers['if-range'];
  const match = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '');
  const type = { 'Content-Type': 'image/png', ETag: etag, 'Accept-Ranges': 'bytes' };
  if (!match || (condition !== undefined && condition !== etag)) {
    return void res.writeHead(200, { ...type, 'Content-Length': total }).end(bytes);
  }
  const [, from = '', to = ''] = match;
  const start = from === '' ? Math.max(0, total - Number(to)) : Number(from);
  const end = from === '' || to === '' ? total - 1 : Math.min(Number(to), total - 1);
  if (start > end) return void res.writeHead(416, { 'Content-Range': `bytes */${total}` }).end();
  const part = bytes.subarray(start, end + 1);
  const range = {
    'Content-Range': `bytes ${start}-${end}/${total}`,
    'Content-Length': part.length,
  };
  res.writeHead(206, { ...type, ...range }).end(part);
}

function etagOf(bytes: Buffer): string {
  return `"${bytes.length}-${bytes.subarray(0, 8).toString('hex')}"`;
}
