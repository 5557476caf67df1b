// Streams as many 30 KB previews as are asked for, as fast as they are taken.
import { randomBytes } from 'node:crypto';
import { type ServerResponse, createServer } from 'node:http';
import { once } from 'node:events';
import { answer, serve } from './serve.ts';

const picture = randomBytes(30_000);
picture.set([0xff, 0xd8, 0xff]);
const event = Buffer.from(
  `event: preview\ndata: ${JSON.stringify({
    node_id: '1',
    content_type: 'image/jpeg',
    data_base64: picture.toString('base64'),
  })}\n\n`,
);

serve(
  createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    void stream(response, Number(request.url?.slice(1)));
  }),
);
answer(() => undefined);

async function stream(response: ServerResponse, events: number): Promise<void> {
  for (let left = events; left > 0; left--) {
    if (!response.write(event)) await once(response, 'drain');
  }
  response.end();
}
