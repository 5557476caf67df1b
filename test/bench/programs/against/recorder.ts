// Passes each call on to a v2 service, and tells which calls there were and when.
import { Agent, type IncomingMessage, type ServerResponse, createServer, request } from 'node:http';
import type { UpstreamCall } from '../../against/upstream-calls.ts';
import { answer, serve } from '../serve.ts';

const target = new URL(process.argv[2] ?? '');
const agent = new Agent({ keepAlive: true });
let calls: UpstreamCall[] = [];

serve(createServer(pass));
answer(() => {
  const taken = calls;
  calls = [];
  return { calls: taken };
});

function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const startMs = now();
  const { method = '', url: path = '' } = incoming;
  const { hostname, port, host } = target;
  const headers = { ...incoming.headers, host };
  const passed = request({ agent, hostname, port, method, path, headers }, (reply) => {
    const { statusCode: status = 599 } = reply;
    outgoing.writeHead(status, reply.headers);
    outgoing.flushHeaders();
    let succeededMs: number | undefined;
    reply.on('data', (chunk: Buffer) => {
      if (/"status": ?"succeeded"/.test(chunk.toString('latin1'))) succeededMs ??= now();
      outgoing.write(chunk);
    });
    reply.on('end', () => outgoing.end());
    reply.once('close', () => {
      const isStream = reply.headers['content-type']?.startsWith('text/event-stream') ?? false;
      const endMs = isStream ? (succeededMs ?? now()) : now();
      const seen = succeededMs === undefined ? {} : { succeededMs };
      calls.push({ method, path, status, startMs, endMs, ...seen });
    });
    outgoing.once('close', () => reply.destroy());
  });
  passed.on('error', () => outgoing.destroy());
  incoming.pipe(passed);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
