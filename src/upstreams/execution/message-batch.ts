import type { MessagePort } from 'node:worker_threads';
import type { FromWorker } from '../jobs/worker-protocol.ts';

/** The longest delay of a message while its thread works and calls `flushOverdue` regularly. */
const MAX_DELAY_MS = 5;

/** The messages of a thread, sent together where possible. */
export type MessageBatch = ReturnType<typeof createMessageBatch>;

/**
 * Sends the posts of one turn of the event loop as one message: small nodes take microseconds, and
 * each message costs both threads more. A request, or the end of a job, is sent at once with all
 * posts before it.
 */
export function createMessageBatch(
  port: Pick<MessagePort, 'postMessage'>,
  now: () => number = () => performance.now(),
) {
  let messages: FromWorker[] = [];
  let transfer: ArrayBuffer[] = [];
  let sinceMs = 0;
  let immediate: NodeJS.Immediate | undefined;
  const flush = (): void => {
    clearImmediate(immediate);
    const [sent, moved] = [messages, transfer];
    [messages, transfer] = [[], []];
    if (sent.length > 0) port.postMessage(sent, moved);
  };
  return {
    post(message: FromWorker): void {
      if (messages.length === 0) {
        sinceMs = now();
        immediate = setImmediate(flush);
      }
      messages.push(message);
      const bytes = bytesOf(message);
      if (bytes) transfer.push(bytes.buffer as ArrayBuffer);
      if (message.type === 'question' || message.type === 'end') flush();
    },
    /** Sends all waiting posts. Call it before work that takes longer than a message. */
    flush,
    /** Sends the posts that have waited too long. Call it often during long work. */
    flushOverdue(): void {
      if (messages.length > 0 && now() - sinceMs >= MAX_DELAY_MS) flush();
    },
  };
}

/** Returns bytes whose memory moves to the main thread. */
function bytesOf(message: FromWorker): Uint8Array | undefined {
  if (message.type === 'preview') return message.data.bytes;
  return message.type === 'question' && message.kind === 'store' ? message.ask.bytes : undefined;
}
