import { randomUUID } from 'node:crypto';

/**
 * A new id for a prompt, a UUID of version 7: who comes later is sorted later, so that prompts
 * written together lie together in the ledger's indexes. It is no easier to guess for that.
 */
export function newPromptKey(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
