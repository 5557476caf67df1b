import { V1Error, plainError } from './errors.ts';

/** Room for bodies on their way: on the disk for all, in number for each user. */
export type UploadQuota = {
  /** Works once there is room; refuses with 503 when there is none for too long. */
  within<T>(wanted: { user: string; bytes: number }, work: () => Promise<T>): Promise<T>;
};

type Waiting = { readonly user: string; readonly bytes: number; readonly enter: () => void };

/** Disk for bodies of all users, and bodies of one user, at a time. */
export const UPLOAD_ROOM = { maxBytes: 2 * 1024 ** 3, maxPerUser: 8 } as const;

/** Less than what an idle body is given: while it waits nobody reads it. */
const PATIENCE_MS = 20_000;
const RETRY_AFTER = { headers: { 'Retry-After': '5', Connection: 'close' } };

/** A single body larger than the room may still come, alone. */
export function createUploadQuota(room: {
  readonly maxBytes: number;
  readonly maxPerUser: number;
  readonly patienceMs?: number;
}): UploadQuota {
  const { maxBytes, maxPerUser, patienceMs = PATIENCE_MS } = room;
  const inside = new Map<string, number>();
  let heldBytes = 0;
  let waiting: readonly Waiting[] = [];

  function fits({ user, bytes }: Waiting): boolean {
    const isRoom = heldBytes === 0 || heldBytes + bytes <= maxBytes;
    return isRoom && (inside.get(user) ?? 0) < maxPerUser;
  }

  function take({ user, bytes }: Waiting): void {
    heldBytes += bytes;
    inside.set(user, (inside.get(user) ?? 0) + 1);
  }

  function give({ user, bytes }: Waiting): void {
    heldBytes -= bytes;
    const left = (inside.get(user) ?? 1) - 1;
    if (left > 0) inside.set(user, left);
    else inside.delete(user);
    admit();
  }

  /** In order, past those who have to wait for themselves. */
  function admit(): void {
    for (const one of waiting) {
      if (!fits(one)) continue;
      waiting = waiting.filter((other) => other !== one);
      take(one);
      one.enter();
    }
  }

  function enter(wanted: { user: string; bytes: number }): Promise<Waiting> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting = waiting.filter((other) => other !== one);
        reject(
          new V1Error(
            503,
            plainError('server_busy', 'Too many uploads are on their way.'),
            RETRY_AFTER,
          ),
        );
      }, patienceMs);
      const one: Waiting = {
        ...wanted,
        enter() {
          clearTimeout(timer);
          resolve(one);
        },
      };
      waiting = [...waiting, one];
      admit();
    });
  }

  return {
    async within(wanted, work) {
      const held = await enter(wanted);
      try {
        return await work();
      } finally {
        give(held);
      }
    },
  };
}
