import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { flat, growing } from '../graphs/workflows.ts';
import { postPrompt } from './v1-client.ts';

const POST_INTERVAL_MS = 400;
const RECONNECT_MS = 100;

type SteadyClientOptions = {
  readonly clientId: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the file that a prompt saves; without it equal prompts of several clients are run once. */
  readonly prefixOf?: (promptId: string) => string;
};

/** A client as v1 programs are: it posts prompts, and connects again when its socket is closed. */
export function startSteadyClient(
  { url, wsUrl }: { readonly url: string; readonly wsUrl: string },
  { clientId, headers = {}, prefixOf }: SteadyClientOptions,
) {
  const posted: { readonly promptId: string; readonly status: number }[] = [];
  const ends = new Map<string, number>();
  let isStopped = false;
  let isPaused = false;
  let isIdle = false;
  let connections = 0;

  function note(text: string): void {
    const { type, data } = JSON.parse(text) as {
      type: string;
      data: { node?: string | null; prompt_id?: string };
    };
    if (type !== 'executing' || data.node !== null || data.prompt_id === undefined) return;
    ends.set(data.prompt_id, (ends.get(data.prompt_id) ?? 0) + 1);
  }

  const listening = (async () => {
    while (!isStopped) {
      const socket = new WebSocket(`${wsUrl}/ws?clientId=${clientId}`, { headers });
      socket.on('error', () => {});
      const closed = new Promise((resolve) => void socket.once('close', resolve));
      socket.on('open', () => void connections++);
      socket.on('message', (data: Buffer, isBinary) => isBinary || note(data.toString()));
      const watch = setInterval(() => isStopped && socket.terminate(), 50);
      await closed;
      clearInterval(watch);
      await delay(RECONNECT_MS);
    }
  })();

  const posting = (async () => {
    for (let i = 0; !isStopped; i++) {
      const prompt_id = `${clientId}-${i}`;
      const own = prefixOf && { prefix: prefixOf(prompt_id) };
      // Some run for a while, so that a restart meets them at it.
      const prompt =
        i % 8 === 3
          ? growing({ steps: 20, side: 64, seed: i, ...own })
          : flat({ color: i, ...own });
      const body = { prompt, client_id: clientId, prompt_id };
      const { status } = await postPrompt(url, body, { headers }).catch(() => ({ status: 0 }));
      posted.push({ promptId: prompt_id, status });
      await delay(POST_INTERVAL_MS);
      while (isPaused && !isStopped) {
        isIdle = true;
        await delay(20);
      }
    }
  })();
  return {
    posted,
    ends,
    connections: () => connections,
    /** Resolves when all of its posts are answered. */
    async stopPosting(): Promise<void> {
      isPaused = true;
      while (!isIdle) await delay(20);
    },
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all([listening, posting]);
    },
  };
}
