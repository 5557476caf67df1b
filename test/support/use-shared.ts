import { afterAll, beforeAll } from 'vitest';

/** What the tests of a file or a group share: it has its members once the first of them begins. */
export function useShared<T extends object>(
  open: () => Promise<T>,
  close: (opened: T) => unknown,
): T {
  const shared = {} as T;
  let opened: T | undefined;
  beforeAll(async () => {
    opened = await open();
    Object.assign(shared, opened);
  });
  afterAll(() => opened && close(opened));
  return shared;
}
