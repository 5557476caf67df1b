import { V1Error, plainError } from '../dialects/errors.ts';

/** Limits bodies that are being received: bytes on disk for all users, bodies for each user. */
export type UploadQuota = ReturnType<typeof createUploadQuota>;

type QueuedUpload = { readonly user: string; readonly bytes: number; readonly enter: () => void };

/** Disk for bodies of all users, and bodies of one user, at a time. */
export const UPLOAD_LIMITS = { maxBytes: 2 * 1024 ** 3, maxPerUser: 8 } as const;

/** Shorter than the limit of an idle body: the body is not read while it waits. */
const MAX_WAIT_MS = 20_000;
const BUSY = plainError('server_busy', 'Too many uploads are on their way.');
const RETRY_AFTER = { headers: { 'Retry-After': '5', Connection: 'close' } };

/** A single body larger than the capacity is still accepted, alone. */
export function createUploadQuota(limits: {
  readonly maxBytes: number;
  readonly maxPerUser: number;
  readonly maxWaitMs?: number;
}) {
  const { maxBytes, maxPerUser, maxWaitMs = MAX_WAIT_MS } = limits;
  const uploadsByUser = new Map<string, number>();
  let heldBytes = 0;
  let queue: readonly QueuedUpload[] = [];

  function fits({ user, bytes }: QueuedUpload): boolean {
    const hasDiskRoom = heldBytes === 0 || heldBytes + bytes <= maxBytes;
    return hasDiskRoom && (uploadsByUser.get(user) ?? 0) < maxPerUser;
  }

  function reserve({ user, bytes }: QueuedUpload): void {
    heldBytes += bytes;
    uploadsByUser.set(user, (uploadsByUser.get(user) ?? 0) + 1);
  }

  function release({ user, bytes }: QueuedUpload): void {
    heldBytes -= bytes;
    const remaining = (uploadsByUser.get(user) ?? 1) - 1;
    if (remaining > 0) uploadsByUser.set(user, remaining);
    else uploadsByUser.delete(user);
    startWaiting();
  }

  /** In order, past those who have to wait for themselves. */
  function startWaiting(): void {
    for (const one of queue) {
      if (!fits(one)) continue;
      queue = queue.filter((other) => other !== one);
      reserve(one);
      one.enter();
    }
  }

  function enter(upload: { user: string; bytes: number }): Promise<QueuedUpload> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        queue = queue.filter((other) => other !== one);
        reject(new V1Error(503, BUSY, RETRY_AFTER));
      }, maxWaitMs);
      const one: QueuedUpload = {
        ...upload,
        enter() {
          clearTimeout(timer);
          resolve(one);
        },
      };
      queue = [...queue, one];
      startWaiting();
    });
  }

  return {
    /** Runs the work once there is capacity; refuses with 503 when there is none for too long. */
    async withRoom<T>(upload: { user: string; bytes: number }, work: () => Promise<T>): Promise<T> {
      const reservation = await enter(upload);
      try {
        return await work();
      } finally {
        release(reservation);
      }
    },
  };
}
