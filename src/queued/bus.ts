import type { Redis } from '../redis.ts';
import type { Logger } from '../telemetry.ts';

type Hear = (message: Buffer) => void;

const PULSE_MS = 15_000;

/** What is published, for any number of ears in this process, over one connection. */
export type Bus = {
  /** Resolves once nothing that is published is missed; call the answer to stop. */
  listen(channel: string, hear: Hear): Promise<() => void>;
  /** After the connection was away: something may have been missed. */
  onGap(look: () => void): void;
  close(): void;
};

/** Takes a connection of its own over. */
export function createBus(subscriber: Redis, log: Logger): Bus {
  const ears = new Map<string, Set<Hear>>();
  const gaps = new Set<() => void>();
  let wasReady = false;

  // A connection that owes nothing could be dead for hours.
  const pulse = setInterval(() => void subscriber.ping().catch(() => {}), PULSE_MS).unref();
  subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    for (const hear of ears.get(channel.toString()) ?? []) hear(message);
  });
  subscriber.on('ready', () => {
    if (wasReady) void recover();
    wasReady = true;
  });

  /** The client subscribes anew by itself, but does not say when that is done. */
  async function recover(): Promise<void> {
    try {
      if (ears.size > 0) await subscriber.subscribe(...ears.keys());
      for (const look of gaps) look();
    } catch (error) {
      log.warn({ err: error }, 'events could not be subscribed to anew');
    }
  }

  return {
    async listen(channel, hear) {
      const hearing = ears.get(channel) ?? new Set();
      ears.set(channel, hearing.add(hear));
      // Also when others listen already: theirs may not have been answered yet.
      await subscriber.subscribe(channel);
      return () => {
        hearing.delete(hear);
        if (hearing.size > 0 || ears.get(channel) !== hearing) return;
        ears.delete(channel);
        subscriber.unsubscribe(channel).catch((error: unknown) => {
          log.debug({ err: error }, 'a channel could not be left');
        });
      };
    },
    onGap: (look) => void gaps.add(look),
    close: () => clearInterval(pulse),
  };
}
