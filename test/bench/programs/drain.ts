// Opens WebSockets and reads whatever comes, as cheaply as Node can.
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { answer, ready } from './serve.ts';

const AT_ONCE = 100;
const buffer = Buffer.allocUnsafe(1024 * 1024);
const sockets: Socket[] = [];

answer(async ({ url, sockets: count }: { readonly url: string; readonly sockets: number }) => {
  for (let left = count; left > 0; left -= AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, () => open(new URL(url))));
  }
  return { open: sockets.length };
});
ready();

async function open({ hostname, port, host }: URL): Promise<void> {
  let onFirst: () => void = () => {};
  const first = new Promise<void>((resolve) => (onFirst = resolve));
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer,
      callback() {
        onFirst();
        return true;
      },
    },
  });
  sockets.push(socket);
  await once(socket, 'connect');
  socket.write(
    `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  await first;
}
