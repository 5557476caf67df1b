import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WebSocket } from 'ws';

/** A request to a program that sends to many sockets. */
export type Sending = { readonly kind: 'picture' | 'text'; readonly forMs: number };

/** Far below what Holdover lets wait before it drops a preview. */
const MOST_WAITING_BYTES = 64 * 1024;

/** Sends to all sockets, again and again, as fast as the slowest of them takes it. */
export async function closedLoop(
  sockets: readonly WebSocket[],
  { forMs, sendAll }: { readonly forMs: number; readonly sendAll: () => void },
): Promise<{ readonly frames: number; readonly ms: number }> {
  const startedAt = performance.now();
  let frames = 0;
  while (performance.now() - startedAt < forMs) {
    sendAll();
    frames += sockets.length;
    while (mostWaiting(sockets) > MOST_WAITING_BYTES) await nextTurn();
  }
  while (mostWaiting(sockets) > 0) await nextTurn();
  return { frames, ms: performance.now() - startedAt };
}

function mostWaiting(sockets: readonly WebSocket[]): number {
  let most = 0;
  for (const { bufferedAmount } of sockets) most = Math.max(most, bufferedAmount);
  return most;
}

/** A picture of 20 KB, to readers that look at its first bytes only. */
export function pictureBytes(): Buffer {
  const bytes = Buffer.alloc(20_000, 7);
  bytes.set([0xff, 0xd8, 0xff]);
  return bytes;
}

/** A message of about 200 bytes. */
export const PROGRESS = {
  type: 'progress',
  data: {
    value: 7,
    max: 20,
    prompt_id: '5f1c1d5e-6c1f-4a54-9d40-8b0d4f7b2f11',
    node: '3',
    display_node: '3',
    note: 'x'.repeat(60),
  },
} as const;
