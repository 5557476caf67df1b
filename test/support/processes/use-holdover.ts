import { afterAll, beforeAll } from 'vitest';
import { type Holdover, type StartOptions, startHoldover } from './holdover.ts';

/** A server for the tests of a file or a group: it has its fields once the first of them begins. */
export function useHoldover(options: StartOptions = {}): Holdover {
  const holdover = {} as Holdover;
  beforeAll(async () => void Object.assign(holdover, await startHoldover(options)));
  afterAll(() => holdover.dispose());
  return holdover;
}
