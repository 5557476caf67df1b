import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import {
  type ClientAction,
  CANCELS,
  SHARES,
  type ActionContext,
  type Acknowledged,
  noneAcknowledged,
} from './client-actions.ts';
import { createClient } from './client.ts';

/** A mixed load that goes on while servers die. */
export type Load = {
  readonly acknowledged: readonly Acknowledged[];
  /** Faults that no client may see. */
  readonly problems: string[];
  /** Resolves when everything under way is answered, or never will be. */
  stop(): Promise<void>;
};

/** The empty one is a client without a key. */
const KEYS = ['', 'ann', 'bob-who-cancels'] as const;
const PARALLEL_ACTIONS = 2;
const PAUSE_MS = 150;
const RECONNECT_MS = 400;

export function startLoad(urls: readonly string[], context: ActionContext): Load {
  const { random } = context;
  const problems: string[] = [];
  const acknowledged = KEYS.map((key) => noneAcknowledged(createClient(urls, { key, random })));
  const sockets = acknowledged.map(({ client: { key } }) => keepSocket(urls, key));
  let isOver = false;

  async function actOneAfterAnother(one: Acknowledged): Promise<void> {
    const cancels = one.client.key.includes('cancels') ? CANCELS : [];
    const shares = [...SHARES, ...cancels];
    while (!isOver) {
      await pick(shares, random)(one, context).catch((error: unknown) => {
        problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      });
      await delay(PAUSE_MS * (0.5 + random()));
    }
  }

  const loops = acknowledged.flatMap((one) =>
    Array.from({ length: PARALLEL_ACTIONS }, () => actOneAfterAnother(one)),
  );
  return {
    acknowledged,
    problems,
    async stop() {
      isOver = true;
      await Promise.all(loops);
      for (const close of sockets) close();
    },
  };
}

function pick(
  shares: readonly (readonly [ClientAction, number])[],
  random: () => number,
): ClientAction {
  let left = random() * shares.reduce((sum, [, share]) => sum + share, 0);
  const chosen = shares.find(([, share]) => (left -= share) < 0) ?? shares[0];
  if (!chosen) throw new Error('there is nothing to do');
  return chosen[0];
}

/** A client's socket; it comes back when its server is gone. */
function keepSocket(urls: readonly string[], key: string): () => void {
  let isOver = false;
  let socket: WebSocket | undefined;
  const open = (turn: number): void => {
    if (isOver) return;
    const url = (urls[turn % urls.length] ?? '').replace(/^http/, 'ws');
    const headers: Record<string, string> = key === '' ? {} : { 'X-API-Key': key };
    socket = new WebSocket(`${url}/ws?clientId=client-${key}`, { headers });
    socket.on('error', () => {});
    socket.on('close', () => void setTimeout(() => open(turn + 1), RECONNECT_MS));
  };
  open(0);
  return () => {
    isOver = true;
    socket?.terminate();
  };
}
