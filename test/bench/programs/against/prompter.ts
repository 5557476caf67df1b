// A v1 client: posts prompts that differ in one number, and waits on a WebSocket for the end of each.
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { WebSocket } from 'ws';
import type { PromptTimes, Prompts } from '../../against/prompts.ts';
import { answer, ready } from '../serve.ts';

let lastColor = 0;

answer(async (prompts: Prompts): Promise<PromptTimes> => {
  const client = await open(prompts.url);
  try {
    return prompts.pace === 'each after the end of the one before'
      ? await oneByOne(client, prompts.count)
      : await allAtOnce(client, prompts);
  } finally {
    client.close();
  }
});
ready();

type Client = {
  /** Resolves with the prompt's id. */
  post(body: string): Promise<string>;
  /** Resolves with the time of the prompt's terminal frame. */
  ended(promptId: string): Promise<number>;
  close(): void;
};

async function oneByOne(client: Client, count: number): Promise<PromptTimes> {
  const endMs: number[] = [];
  const startedAt = performance.now();
  let acceptedMs = 0;
  let bodyBytes = 0;
  for (let left = count; left > 0; left--) {
    const body = nextBody();
    bodyBytes += Buffer.byteLength(body);
    const postedAt = performance.now();
    const id = await client.post(body);
    acceptedMs = performance.now() - startedAt;
    endMs.push((await client.ended(id)) - postedAt);
  }
  return timesOf({ startedAt, endMs, acceptedMs, bodyBytes });
}

async function allAtOnce(client: Client, prompts: Prompts): Promise<PromptTimes> {
  const { count, connections, pace } = prompts;
  const bodies = Array.from({ length: count }, nextBody);
  const bodyBytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
  const endMs: number[] = [];
  const ends: Promise<void>[] = [];
  const startedAt = performance.now();
  async function connection(): Promise<void> {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const postedAt = performance.now();
      const id = await client.post(body);
      if (pace === 'each after an answer, none followed') continue;
      ends.push(client.ended(id).then((at) => void endMs.push(at - postedAt)));
    }
  }
  await Promise.all(Array.from({ length: connections }, connection));
  const acceptedMs = performance.now() - startedAt;
  await Promise.all(ends);
  return timesOf({ startedAt, endMs, acceptedMs, bodyBytes });
}

function timesOf(
  found: Pick<PromptTimes, 'endMs' | 'acceptedMs' | 'bodyBytes'> & { readonly startedAt: number },
): PromptTimes {
  const { startedAt, ...times } = found;
  const startedAtMs = performance.timeOrigin + startedAt;
  return { ...times, startedAtMs, finishedMs: performance.now() - startedAt };
}

function nextBody(): string {
  lastColor = (lastColor + 1) % 0xffffff;
  return JSON.stringify({
    client_id: 'bench',
    prompt: {
      '1': {
        class_type: 'EmptyImage',
        inputs: { width: 8, height: 8, batch_size: 1, color: lastColor },
      },
      '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
    },
  });
}

async function open(url: string): Promise<Client> {
  const agent = new Agent({ keepAlive: true });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=bench`, {
    perMessageDeflate: false,
  });
  const ends = collectEnds(socket);
  await once(socket, 'open');
  return {
    post: (body) => post({ url, agent, body }),
    ended: ends,
    close() {
      socket.terminate();
      agent.destroy();
    },
  };
}

/** A terminal frame may come before the answer that names its prompt. */
function collectEnds(socket: WebSocket): Client['ended'] {
  const seen = new Map<string, number>();
  const waiting = new Map<string, (at: number) => void>();
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return;
    const at = performance.now();
    const { type, data: about } = JSON.parse(data.toString());
    if (type === 'execution_error') throw new Error(data.toString());
    if (type !== 'execution_success') return;
    const resolve = waiting.get(about.prompt_id);
    if (resolve === undefined) return void seen.set(about.prompt_id, at);
    waiting.delete(about.prompt_id);
    resolve(at);
  });
  return (promptId) => {
    const at = seen.get(promptId);
    seen.delete(promptId);
    if (at !== undefined) return Promise.resolve(at);
    return new Promise((resolve) => waiting.set(promptId, resolve));
  };
}

function post(call: { readonly url: string; readonly agent: Agent; readonly body: string }) {
  const { url, agent, body } = call;
  return new Promise<string>((resolve, reject) => {
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    };
    const sent = request(`${url}/prompt`, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        if (response.statusCode === 200) return resolve(JSON.parse(text).prompt_id);
        reject(new Error(`the prompt was answered with ${response.statusCode}: ${text}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
