import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type Koa from 'koa';

/** How long an unwanted body is read further: in total, and without any new byte. */
const DRAIN_MS = { max: 10_000, idle: 2000 } as const;

/**
 * Reads and drops the rest of a request body after the answer is ready. Many clients send the whole
 * body before they read the answer: to close the connection then resets it, and the answer is lost.
 * The v1 server also reads on for ten seconds.
 */
export const drainRequest: Koa.Middleware = async (ctx, next) => {
  await next();
  const { body, req, res } = ctx;
  // An answer without a body is sent at once: its connection would be closed before the body came.
  if (ctx.method === 'HEAD' && !req.complete && !req.destroyed) await drain(req);
  if (req.complete || req.destroyed) return;
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return;
  const type = ctx.response.get('Content-Type');
  ctx.body = Readable.from(answerThenDrain(ctx, body), { objectMode: false });
  ctx.length = Buffer.byteLength(body);
  if (type) ctx.set('Content-Type', type);
  else ctx.remove('Content-Type');
  res.once('finish', () => {
    if (!req.complete) req.socket.destroySoon();
  });
};

async function* answerThenDrain({ req, res }: Koa.Context, answer: string | Buffer) {
  res.flushHeaders();
  if (answer.length > 0) yield answer;
  await drain(req);
}

function drain(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const idle = setTimeout(done, DRAIN_MS.idle);
    const max = setTimeout(done, DRAIN_MS.max);
    function done(): void {
      clearTimeout(idle);
      clearTimeout(max);
      resolve();
    }
    // All earlier readers of the body are removed, whichever events they use.
    request.removeAllListeners('data').removeAllListeners('readable');
    request.on('data', () => idle.refresh()).resume();
    request.once('end', done).once('close', done);
  });
}
