// Koa with nothing to do.
import { type RequestListener, createServer } from 'node:http';
import Koa from 'koa';
import { answer, serve } from './serve.ts';

const app = new Koa();
app.use((ctx) => {
  ctx.body = '';
});
serve(createServer(app.callback() as RequestListener));
answer(() => undefined);
