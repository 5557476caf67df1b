// A small program that never touches a file on the server: what arrives as bytes while the node
// `save_image_websocket_node` executes is the picture, after eight bytes of header.
//
//   node socket-images.mjs HOST:PORT WORKFLOW_FILE OUTPUT_DIR

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { WebSocket } from 'ws';

const [server, workflowFile, outputDir] = process.argv.slice(2);
const clientId = randomUUID();
const pictures = [];
let node = '';
let promptId;

const socket = new WebSocket(`ws://${server}/ws?clientId=${clientId}`);
const ended = new Promise((resolve) => {
  socket.on('message', (data, isBinary) => {
    if (isBinary) {
      if (node === 'save_image_websocket_node') pictures.push(data.subarray(8));
      return;
    }
    const message = JSON.parse(Buffer.from(data).toString());
    if (message.type !== 'executing' || message.data.prompt_id !== promptId) return;
    node = message.data.node;
    if (node === null) resolve();
  });
});
await once(socket, 'open');
const call = request(`http://${server}/prompt`, { method: 'POST' });
call.end(`{"prompt": ${await readFile(workflowFile, 'utf8')}, "client_id": "${clientId}"}`);
const [response] = await once(call, 'response');
promptId = JSON.parse((await response.toArray()).join('')).prompt_id;
await ended;
const saved = [];
for (const [index, picture] of pictures.entries()) {
  await writeFile(join(outputDir, `${index}.png`), picture);
  saved.push(`${index}.png`);
}
console.log(JSON.stringify({ promptId, saved }));
socket.close();
