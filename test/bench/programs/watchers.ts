// WebSocket clients of a job: some count what they get, some stop reading at once.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { answer, ready } from './serve.ts';

type Counter = { previews: number; steps: number };

type Request = { readonly url?: string; readonly fast?: number; readonly stalled?: number };

const counters: Counter[] = [];

answer(async ({ url, fast = 0, stalled = 0 }: Request) => {
  if (url !== undefined) {
    for (let i = 0; i < fast; i++) await openFast(url);
    for (let i = 0; i < stalled; i++) await openStalled(url);
  }
  return {
    previews: counters.map(({ previews }) => previews),
    steps: counters.map(({ steps }) => steps),
  };
});
ready();

async function openFast(url: string): Promise<void> {
  const counter: Counter = { previews: 0, steps: 0 };
  counters.push(counter);
  const socket = await open(url);
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) counter.previews++;
    else if (data.includes('"progress"')) counter.steps++;
  });
}

async function openStalled(url: string): Promise<void> {
  const socket = await open(url);
  socket.pause();
}

async function open(url: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?token=watcher`, {
    perMessageDeflate: false,
  });
  await once(socket, 'open');
  return socket;
}
