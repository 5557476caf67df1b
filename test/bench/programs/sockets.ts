// Opens WebSockets and leaves them open.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { answer, ready } from './serve.ts';

const AT_ONCE = 100;

answer(async ({ url, sockets }: { readonly url: string; readonly sockets: number }) => {
  const address = `${url.replace('http', 'ws')}/ws`;
  for (let left = sockets; left > 0; left -= AT_ONCE) {
    const opening = Array.from({ length: AT_ONCE }, () => {
      return once(new WebSocket(address, { perMessageDeflate: false }), 'message');
    });
    await Promise.all(opening);
  }
});
ready();
