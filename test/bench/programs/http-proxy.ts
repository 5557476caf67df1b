// http-proxy as its users write it, with an agent that keeps connections.
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy';
import { answer, serve } from './serve.ts';

const proxy = httpProxy.createProxyServer({
  target: process.argv[2] ?? '',
  agent: new Agent({ keepAlive: true }),
});
proxy.on('error', (_error, _request, response) => void response.end());
serve(createServer((request, response) => proxy.web(request, response)));
answer(() => undefined);
