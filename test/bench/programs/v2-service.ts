// A stand-in v2 service: takes files without looking at them, and jobs that stream what it is told to.
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { jobText } from '../job.ts';
import { answer, serve } from './serve.ts';

/** The progress and preview events of a job, from the moment a client opens its stream. */
export type Show = {
  readonly count: number;
  readonly everyMs: number;
  readonly previewBytes: number;
};

let show: Show = { count: 0, everyMs: 10, previewBytes: 0 };

const server = createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => reply(request, response));
});
server.requestTimeout = 0;
serve(server);
answer((request: Show) => void (show = request));

function reply(request: IncomingMessage, response: ServerResponse): void {
  const { method, url = '' } = request;
  if (method === 'POST' && url === '/api/v2/assets') return json(response, 201, assetText());
  if (method === 'POST' && url === '/api/v2/jobs') {
    return json(response, 201, jobText(randomUUID(), 'queued'));
  }
  const [, id = '', events] = /^\/api\/v2\/jobs\/([^/]+)(\/events)?$/.exec(url) ?? [];
  if (id !== '' && events !== undefined) return stream(response);
  if (id !== '') return json(response, 200, jobText(id, 'queued').replace('"queued"', '"running"'));
  // An upload is answered wherever it goes: nginx passes v1's own path on.
  if (method === 'POST') return json(response, 201, assetText());
  json(response, 404, '{"error":{"code":"not_found","message":"none","details":null}}');
}

function json(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

function assetText(): string {
  return JSON.stringify({
    id: 'asset-1',
    hash: null,
    size_bytes: 10,
    content_type: 'application/octet-stream',
    created_at: '2026-01-01T00:00:00.000Z',
    url: '/x',
    url_expires_at: '2027-01-01T00:00:00.000Z',
    created_new: true,
    name: 'bench',
    file_path: 'bench',
    tags: [],
    expires_at: null,
  });
}

/** A progress event and a preview at each tick. */
function stream(response: ServerResponse): void {
  const { count, everyMs, previewBytes } = show;
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write('event: status\ndata: {"status":"running"}\n\n');
  const bytes = Buffer.alloc(previewBytes, 7);
  bytes.set([0xff, 0xd8, 0xff]);
  const picture = {
    node_id: '1',
    content_type: 'image/jpeg',
    data_base64: bytes.toString('base64'),
  };
  const preview = `event: preview\ndata: ${JSON.stringify(picture)}\n\n`;
  const startedAt = performance.now();
  let step = 0;
  const timer = setInterval(() => {
    while (step < count && performance.now() - startedAt >= step * everyMs) {
      step++;
      response.write(`event: progress\ndata: ${JSON.stringify(progressOf(step, count))}\n\n`);
      response.write(preview);
    }
    if (step === count) clearInterval(timer);
  }, everyMs / 2);
  response.once('close', () => clearInterval(timer));
}

function progressOf(value: number, max: number): object {
  return {
    value: value / max,
    nodes_total: 3,
    nodes_done: 0,
    current_node: '1',
    step: value,
    steps: max,
  };
}
