import { compareIds } from './submit/ids.ts';

type Created = { readonly createdAtMs: number; readonly key: string };

/** The facts that decide the place of a prompt. */
export type Queued = Created & { readonly number: number };

/** Orders prompts by age, oldest first. All processes must order two prompts in the same way. */
export function byCreation(a: Created, b: Created): number {
  return a.createdAtMs - b.createdAtMs || compareIds(a.key, b.key);
}

/** Orders prompts as they run: the lower number first, equal numbers by age. */
export function byQueueOrder(a: Queued, b: Queued): number {
  return a.number === b.number ? byCreation(a, b) : a.number - b.number;
}
