// A service that takes its time with an upload is not the client's fault.
import type { RequestListener, ServerResponse } from 'node:http';
import Koa from 'koa';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, listen } from '../../src/http/server.ts';
import { PassThrough } from '../../src/passthrough/pass-through.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { startOrigin } from './origin.ts';

const BODY_IDLE_MS = 200;

async function startFront(baseUrl: string, ...before: Koa.Middleware[]): Promise<number> {
  const passThrough = new PassThrough({
    baseUrl,
    key: undefined,
    authenticate: async () => ({ user: 'local' }),
    log: silentLogger(),
  });
  const app = new Koa();
  for (const each of [...before, passThrough.serve]) app.use(each);
  const handler = app.callback() as RequestListener;
  const server = createHttpServer(handler, { bodyIdleMs: BODY_IDLE_MS });
  onTestFinished(() => {
    passThrough.close();
    server.closeAllConnections();
    server.close();
  });
  return listen(server, { listen: '127.0.0.1', port: 0 });
}

test('an upload that the service does not take yet is not given up, one that does not come is', async () => {
  const origin = await startOrigin();
  onTestFinished(() => origin.close());
  const bytes = 20 * 1024 * 1024;
  origin.on('/slow', async (req, res) => {
    await new Promise((resolve) => setTimeout(resolve, BODY_IDLE_MS * 5));
    let got = 0;
    for await (const chunk of req) got += (chunk as Buffer).length;
    res.end(`got ${got}`);
  });
  const port = await startFront(origin.url);
  const post = (length: number) =>
    requestText('/api/v2/slow', { method: 'POST', headers: [`Content-Length: ${length}`] });

  const whole = await dial(port);
  whole.send(post(bytes));
  whole.send(Buffer.alloc(bytes));
  expect((await whole.answer()).raw).toContain(`got ${bytes}`);

  const part = await dial(port);
  part.send(post(bytes));
  part.send('part');
  expect((await part.answer()).status).toBe(408);
});

test('an answer that its client reads slowly collects no listeners', async () => {
  const origin = await startOrigin();
  onTestFinished(() => origin.close());
  const bytes = 20 * 1024 * 1024;
  origin.on('/large', (_req, res) => void res.end(Buffer.alloc(bytes)));
  const answers: ServerResponse[] = [];
  const port = await startFront(origin.url, (ctx, next) => {
    answers.push(ctx.res);
    return next();
  });
  const answer = await fetch(`http://127.0.0.1:${port}/api/v2/large`);
  const listeners: number[] = [];
  let received = 0;
  for await (const chunk of answer.body ?? []) {
    received += chunk.length;
    listeners.push(answers[0]?.listenerCount('close') ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(received).toBe(bytes);
  expect(Math.max(...listeners)).toBe(listeners[0]);
});
