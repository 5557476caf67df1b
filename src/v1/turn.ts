import type { LivePrompt } from './board.ts';

type Aged = Pick<LivePrompt, 'createdAtMs' | 'key'>;

/** Oldest first. Every process must say the same of two prompts, whichever it heard of first. */
export function byAge(a: Aged, b: Aged): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.key === b.key) return 0;
  return a.key < b.key ? -1 : 1;
}

/** In the order they will run: lower number first, equal ones as they came. */
export function byTurn(a: Aged & { number: number }, b: Aged & { number: number }): number {
  return a.number === b.number ? byAge(a, b) : a.number - b.number;
}
