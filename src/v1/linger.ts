import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type Koa from 'koa';

/** How long what nobody wants is still read: in all, and while nothing comes. */
const LINGER_MS = { most: 10_000, quiet: 2000 } as const;

/**
 * Reads and drops the rest of a body whose answer is ready. Many clients send everything before
 * they listen; closing on bytes they are still sending is a reset, and takes the answer with it.
 * The v1 server lingers for ten seconds too.
 */
export const linger: Koa.Middleware = async (ctx, next) => {
  await next();
  const { body, req, res } = ctx;
  if (req.complete || req.destroyed) return;
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return;
  const type = ctx.response.get('Content-Type');
  ctx.body = Readable.from(thenDrain(ctx, body), { objectMode: false });
  ctx.length = Buffer.byteLength(body);
  if (type) ctx.set('Content-Type', type);
  else ctx.remove('Content-Type');
  res.once('finish', () => {
    if (!req.complete) req.socket.destroySoon();
  });
};

async function* thenDrain({ req, res }: Koa.Context, answer: string | Buffer) {
  res.flushHeaders();
  if (answer.length > 0) yield answer;
  await drain(req);
}

function drain(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const quiet = setTimeout(done, LINGER_MS.quiet);
    const most = setTimeout(done, LINGER_MS.most);
    function done(): void {
      clearTimeout(quiet);
      clearTimeout(most);
      resolve();
    }
    // Whoever read so far did it one way or the other, and has lost interest.
    request.removeAllListeners('data').removeAllListeners('readable');
    request.on('data', () => quiet.refresh()).resume();
    request.once('end', done).once('close', done);
  });
}
