import type { RedisConnections } from '../../lib/redis.ts';

/** An eye on the one thing that says whose data are in a Redis. */
export type IdentityWatch = {
  /** Resolves when they are no longer this ledger's; never rejects. */
  readonly lost: Promise<Error>;
  close(): void;
};

/** So long clients may be told what is lost already. */
const POLL_MS = 5000;

/** Emptied, or come back without its data, Redis answers as if nothing had ever been in it. */
export function watchIdentity({ commands, prefix }: RedisConnections, id: string): IdentityWatch {
  let close = (): void => {};
  const lost = new Promise<Error>((resolve) => {
    const check = (found: string | null): void => {
      if (found !== id) resolve(new Error(found === null ? EMPTIED : REPLACED));
    };
    const poll = (): void => {
      // Away or not: that is for others to tell.
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
