// A v1 client: posts prompts that differ in one number, each after the terminal frame of the one before.
import { once } from 'node:events';
import { Pool } from 'undici';
import { WebSocket } from 'ws';
import { answer, ready } from './serve.ts';

export type Prompts = { readonly url: string; readonly count: number };
/** From the POST of each to its terminal frame. */
export type PromptTimes = { readonly endMs: readonly number[] };

let lastColor = 0;

answer(async ({ url, count }: Prompts): Promise<PromptTimes> => {
  const pool = new Pool(url, { connections: 1 });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=bench`, {
    perMessageDeflate: false,
  });
  await once(socket, 'open');
  const endMs: number[] = [];
  while (endMs.length < count) {
    const startedAt = performance.now();
    const ended = terminalFrame(socket);
    const call = { method: 'POST', path: '/prompt', body: nextBody() } as const;
    const { statusCode, body } = await pool.request(call);
    if (statusCode !== 200) throw new Error(await body.text());
    await body.dump();
    endMs.push((await ended) - startedAt);
  }
  socket.terminate();
  await pool.close();
  return { endMs };
});
ready();

/** Resolves with its time. */
function terminalFrame(socket: WebSocket): Promise<number> {
  return new Promise((resolve, reject) => {
    socket.on('message', function take(data: Buffer, isBinary: boolean) {
      if (isBinary) return;
      const { type } = JSON.parse(data.toString()) as { readonly type: string };
      if (type === 'execution_error') return reject(new Error(data.toString()));
      if (type !== 'execution_success') return;
      socket.off('message', take);
      resolve(performance.now());
    });
  });
}

function nextBody(): string {
  const picture = { width: 8, height: 8, batch_size: 1, color: lastColor++ };
  const prompt = {
    '1': { class_type: 'EmptyImage', inputs: picture },
    '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
  };
  return JSON.stringify({ client_id: 'bench', prompt });
}
