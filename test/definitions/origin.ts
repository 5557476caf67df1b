import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Hook = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A server that has definitions, or whatever it is told to have. */
export type Origin = {
  readonly url: string;
  readonly port: number;
  /** Every request, as `GET /path`, with the headers it had. */
  readonly journal: { readonly line: string; readonly headers: IncomingMessage['headers'] }[];
  /** Answers everything from now on, until told otherwise. */
  answer: Hook;
  lines(): string[];
  close(): Promise<void>;
};

export async function openOrigin(answer: Hook, port = 0): Promise<Origin> {
  const origin = { answer, journal: [] as Origin['journal'] };
  const server = createServer((req, res) => {
    origin.journal.push({ line: `${req.method} ${req.url}`, headers: req.headers });
    void origin.answer(req, res);
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const address = server.address() as AddressInfo;
  return Object.assign(origin, {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    lines: () => origin.journal.map(({ line }) => line),
    async close() {
      server.closeAllConnections();
      server.close();
      if (server.listening) await once(server, 'close');
    },
  });
}

/** A class as v1 describes it. */
export function nodeClass(fields: object = {}): object {
  return {
    input: { required: {} },
    input_order: { required: [] },
    output: [],
    output_is_list: [],
    output_name: [],
    name: 'x',
    display_name: 'x',
    description: '',
    python_module: 'nodes',
    category: 'test',
    output_node: false,
    ...fields,
  };
}

export const CHOOSER = nodeClass({
  input: { required: { image: [['theirs.png'], { image_upload: true }] } },
});

/** Classes by name. */
export function classes(...names: string[]): { [name: string]: object } {
  return Object.fromEntries(names.map((name) => [name, nodeClass({ name })]));
}

/** The answer of a correct server: 200 with an ETag, or 304. */
export function honest(body: object | (() => object)): Hook {
  return (req, res) => {
    const text = JSON.stringify(typeof body === 'function' ? body() : body);
    const etag = `"${text.length}-${text.slice(2, 12).replaceAll(/\W/g, '')}"`;
    if (req.headers['if-none-match'] === etag) return res.writeHead(304, { etag }).end();
    return res.writeHead(200, { 'Content-Type': 'application/json', etag }).end(text);
  };
}

export function status(code: number, headers: { [name: string]: string } = {}): Hook {
  return (_req, res) => res.writeHead(code, headers).end('{"detail":"no"}');
}

export const reset: Hook = (req) => void req.socket.resetAndDestroy();

/** The key a request carries, wherever. */
export function keyOf({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return headers.authorization?.replace('Bearer ', '') ?? (headers['x-api-key'] as string);
}
