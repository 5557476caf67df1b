import { once } from 'node:events';
import {
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
  request as sendRequest,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** The fault of one request, or of its answer. */
export type BucketFault =
  | 'pass'
  /** The connection is reset before the request reaches the bucket. */
  | 'reset'
  /** The request is done; its answer is lost. */
  | 'lost answer'
  | { readonly status: number; readonly code: string }
  /** The answer breaks off after so many bytes of its body. */
  | { readonly resetAfterBytes: number }
  /** Bytes of the body of the answer are changed. */
  | 'wrong bytes';

/** A request as a fault is chosen for it; `key` is that of the object, with its prefix. */
export type SeenRequest = { readonly method: string; readonly key: string; readonly query: string };

/** Stands in front of a bucket server. */
export type BucketProxy = {
  readonly endpoint: string;
  /** Every request since the start. */
  readonly seen: SeenRequest[];
  /** Decides about each request from now on. */
  use(fault: (request: SeenRequest) => BucketFault): void;
  close(): Promise<void>;
};

export async function startBucketProxy(endpoint: string): Promise<BucketProxy> {
  const seen: SeenRequest[] = [];
  let choose: (request: SeenRequest) => BucketFault = () => 'pass';
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? '', endpoint);
    const key = decodeURIComponent(url.pathname.split('/').slice(2).join('/'));
    const one = { method: request.method ?? '', key, query: url.search };
    seen.push(one);
    handle(endpoint, { request, response, fault: choose(one) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    use: (fault) => void (choose = fault),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly fault: BucketFault;
};

function handle(endpoint: string, { request, response, fault }: Exchange): void {
  if (fault === 'reset') return void request.socket.resetAndDestroy();
  if (typeof fault === 'object' && 'status' in fault) return refuse(request, response, fault);
  const { hostname, port } = new URL(endpoint);
  // The host is signed: it stays the one that the client sent.
  const { method = '', url = '', headers } = request;
  const forwarded = sendRequest({ hostname, port, method, path: url, headers }, (answer) => {
    if (fault === 'lost answer')
      return void answer.resume().on('end', () => request.socket.destroy());
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    let sentBytes = 0;
    answer.on('data', (chunk: Buffer) => {
      if (typeof fault === 'object' && 'resetAfterBytes' in fault) {
        const rest = fault.resetAfterBytes - sentBytes;
        if (chunk.length >= rest) {
          response.write(chunk.subarray(0, Math.max(0, rest)), () =>
            request.socket.resetAndDestroy(),
          );
          return void answer.destroy();
        }
      }
      if (fault === 'wrong bytes') chunk[0] = (chunk[0] ?? 0) ^ 0xff;
      sentBytes += chunk.length;
      if (!response.write(chunk)) {
        answer.pause();
        response.once('drain', () => answer.resume());
      }
    });
    answer.on('end', () => response.end());
  });
  forwarded.on('error', () => request.socket.destroy());
  request.pipe(forwarded);
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, code }: Extract<BucketFault, { status: number }>,
): void {
  request.resume();
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml', connection: 'close' });
  response.end(request.method === 'HEAD' ? undefined : body);
}
