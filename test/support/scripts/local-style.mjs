// A small program as users of a local v1 server write them: socket first, its own prompt id, a form
// content type as Python's standard library sends it, the answer of the POST thrown away, the end
// recognised by `executing` with node null, the history read at once.
//
//   node local-style.mjs HOST:PORT WORKFLOW_FILE OUTPUT_DIR

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { WebSocket } from 'ws';

const [server, workflowFile, outputDir] = process.argv.slice(2);
const clientId = randomUUID();

async function exchange(method, path, { body, headers = {} } = {}) {
  const call = request(`http://${server}${path}`, {
    method,
    headers: { Connection: 'close', ...headers },
  });
  call.end(body);
  const [response] = await once(call, 'response');
  const chunks = [];
  for await (const chunk of response) chunks.push(chunk);
  if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${response.statusCode}`);
  return Buffer.concat(chunks);
}

function submit(workflow, promptId) {
  const body = `{"prompt": ${workflow}, "client_id": "${clientId}", "prompt_id": "${promptId}"}`;
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': Buffer.byteLength(body),
  };
  return exchange('POST', '/prompt', { body, headers });
}

/** Resolves at the terminal frame; there is no other way out. */
function lastFrame(socket, promptId) {
  return new Promise((resolve) => {
    socket.on('message', (data, isBinary) => {
      if (isBinary) return;
      const { type, data: fields } = JSON.parse(data.toString());
      if (type === 'executing' && fields.node === null && fields.prompt_id === promptId) resolve();
    });
  });
}

async function save(images) {
  const saved = [];
  for (const { filename, subfolder, type } of images) {
    const query = new URLSearchParams({ filename, subfolder, type });
    await writeFile(join(outputDir, filename), await exchange('GET', `/view?${query}`));
    saved.push(filename);
  }
  return saved;
}

const socket = new WebSocket(`ws://${server}/ws?clientId=${clientId}`, {
  origin: `http://${server}`,
});
await once(socket, 'open');
const promptId = randomUUID();
const ended = lastFrame(socket, promptId);
await submit(await readFile(workflowFile, 'utf8'), promptId);
await ended;
const history = JSON.parse((await exchange('GET', `/history/${promptId}`)).toString());
const { outputs, status } = history[promptId];
const images = Object.values(outputs).flatMap((output) => output.images ?? []);
const saved = await save(images);
console.log(JSON.stringify({ promptId, outputs, status, saved }));
socket.close();
