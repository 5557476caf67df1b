// The reference: one ready buffer, sent to each socket in a loop.
import { createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Sending, PROGRESS, closedLoop, pictureBytes } from './closed-loop.ts';
import { answer, serve } from './serve.ts';

const sockets: WebSocket[] = [];
const picture = Buffer.concat([Buffer.from([0, 0, 0, 1, 0, 0, 0, 1]), pictureBytes()]);
const text = JSON.stringify(PROGRESS);
const server = createServer();
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (ws) => {
  sockets.push(ws);
});
serve(server);

answer(({ kind, forMs }: Sending) => {
  const frame = kind === 'picture' ? picture : text;
  return closedLoop(sockets, {
    forMs,
    sendAll() {
      for (const ws of sockets) ws.send(frame);
    },
  });
});
