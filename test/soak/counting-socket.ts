import { once } from 'node:events';
import { WebSocket } from 'ws';

/** The frames at the end of a prompt that one socket received. */
export type PromptFrames = {
  /** `execution_success`, `execution_error`, `execution_interrupted`, as they came. */
  readonly ends: string[];
  /** `executing` with no node: v1's last word. */
  closings: number;
};

/** A client's socket that keeps counts instead of frames. */
export type CountingSocket = {
  readonly clientId: string;
  framesOf(promptId: string): PromptFrames;
  /** Resolves at v1's last word; false when it does not come in time. */
  closed(promptId: string, withinMs: number): Promise<boolean>;
  previews(): number;
  close(): void;
};

const ENDS = new Set(['execution_success', 'execution_error', 'execution_interrupted']);
/** A slow reader reads so long, and then does not for so long. */
const SLOW_MS = { reads: 250, sleeps: 4000 } as const;

export type CountingSocketOptions = {
  readonly wsUrl: string;
  readonly clientId: string;
  readonly key: string;
  /** `asleep` never reads anything. */
  readonly reads: 'at once' | 'slowly' | 'asleep';
};

export async function openCountingSocket({
  wsUrl,
  clientId,
  key,
  reads,
}: CountingSocketOptions): Promise<CountingSocket> {
  const socket = new WebSocket(`${wsUrl}/ws?clientId=${clientId}`, {
    headers: { 'X-API-Key': key },
  });
  const prompts = new Map<string, PromptFrames>();
  const waiters = new Map<string, () => void>();
  let previews = 0;
  const framesOf = (promptId: string): PromptFrames => {
    const known = prompts.get(promptId) ?? { ends: [], closings: 0 };
    prompts.set(promptId, known);
    return known;
  };
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return void previews++;
    const { type, data: said } = JSON.parse(data.toString());
    if (said?.prompt_id === undefined) return;
    if (ENDS.has(type)) framesOf(said.prompt_id).ends.push(type);
    if (type !== 'executing' || said.node !== null) return;
    framesOf(said.prompt_id).closings++;
    waiters.get(said.prompt_id)?.();
  });
  // One that sleeps is cut off by the server now and then.
  socket.on('error', () => {});
  await once(socket, 'open');
  if (reads === 'asleep') socket.pause();
  const stop = reads === 'slowly' ? readSlowly(socket) : () => {};
  return {
    clientId,
    framesOf,
    closed(promptId, withinMs) {
      return new Promise((resolve) => {
        if (framesOf(promptId).closings > 0) return resolve(true);
        const timer = setTimeout(() => resolve(false), withinMs);
        waiters.set(promptId, () => {
          clearTimeout(timer);
          waiters.delete(promptId);
          resolve(true);
        });
      });
    },
    previews: () => previews,
    close() {
      stop();
      socket.terminate();
    },
  };
}

function readSlowly(socket: WebSocket): () => void {
  let wake: NodeJS.Timeout | undefined;
  const nap = setInterval(() => {
    socket.resume();
    wake = setTimeout(() => socket.pause(), SLOW_MS.reads);
  }, SLOW_MS.sleeps);
  return () => {
    clearInterval(nap);
    clearTimeout(wake);
  };
}
