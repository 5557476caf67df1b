// A v2 service that takes files without looking at them, whatever their path: nginx passes on v1's own.
import { createServer } from 'node:http';
import { answer, serve } from './serve.ts';

const ASSET = JSON.stringify({
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
const MISSING = '{"error":{"code":"not_found","message":"none","details":null}}';

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    const isFile = request.method === 'POST';
    response.writeHead(isFile ? 201 : 404, { 'Content-Type': 'application/json' });
    response.end(isFile ? ASSET : MISSING);
  });
});
server.requestTimeout = 0;
serve(server);
answer(() => undefined);
