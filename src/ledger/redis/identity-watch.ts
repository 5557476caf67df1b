import type { RedisConnections } from '../../lib/redis.ts';

/** Watches the key that identifies the data in a Redis. */
export type IdentityWatch = {
  /** Resolves when the data are no longer this ledger's; never rejects. */
  readonly lost: Promise<Error>;
  close(): void;
};

/** Interval of the check. Until it notices the loss, clients may still get lost data. */
const POLL_MS = 5000;

/**
 * A Redis that was emptied, or restarted without its data, answers as if it had always been empty.
 */
export function watchIdentity({ commands, prefix }: RedisConnections, id: string): IdentityWatch {
  let close = (): void => {};
  const lost = new Promise<Error>((resolve) => {
    const check = (found: string | null): void => {
      if (found !== id) resolve(new Error(found === null ? EMPTIED : REPLACED));
    };
    const poll = (): void => {
      // Errors of the connection are reported elsewhere.
      commands.get(`${prefix}id`).then(check, () => {});
    };
    const timer = setInterval(poll, POLL_MS).unref();
    commands.on('ready', poll);
    close = () => {
      clearInterval(timer);
      commands.off('ready', poll);
    };
  });
  return { lost, close: () => close() };
}

const EMPTIED = 'redis has lost the data of this ledger';
const REPLACED = 'redis has the data of another ledger now';
