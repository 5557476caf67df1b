import { type BodyRefusal, refusedBody } from './unpacked-body.ts';
import { Semaphore, type SemaphoreInterface, withTimeout } from 'async-mutex';

/**
 * Limits how many uploads of one user are received at a time: each takes half a megabyte of memory.
 */
export type UploadLimit = <T>(user: string, receive: () => Promise<T>) => Promise<T | BodyRefusal>;

const MAX_PER_USER = 8;
/** Shorter than the limit of an idle body, since a waiting body is not read. */
const MAX_WAIT_MS = 20_000;
const TIMED_OUT = new Error('waited too long');
/** The refusal of an upload whose body has not been read. */
const BUSY: BodyRefusal = {
  ...refusedBody(503, 'Too many uploads of this user are on their way.'),
  retryAfterSeconds: 5,
};

export function createUploadLimit({
  maxPerUser = MAX_PER_USER,
  maxWaitMs = MAX_WAIT_MS,
} = {}): UploadLimit {
  const slotsByUser = new Map<string, SemaphoreInterface>();
  /** Receives an upload as soon as the user has a free slot. Refuses it after a limited wait. */
  return async (user, receive) => {
    const slots =
      slotsByUser.get(user) ?? withTimeout(new Semaphore(maxPerUser), maxWaitMs, TIMED_OUT);
    slotsByUser.set(user, slots);
    try {
      return await slots.runExclusive(receive);
    } catch (error) {
      if (error === TIMED_OUT) return BUSY;
      throw error;
    } finally {
      if (slots.getValue() === maxPerUser) slotsByUser.delete(user);
    }
  };
}
